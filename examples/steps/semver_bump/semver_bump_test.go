package semver_bump_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
)

func TestMain(m *testing.M) { lesson.Main(m) }

// committed is the module that lies beside the source, so that a test does not need the
// compiler to try the example.
func committed(t *testing.T) []byte {
	t.Helper()
	module, err := os.ReadFile("semver_bump.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func TestCases(t *testing.T) { lesson.Cases(t, ".", committed(t)) }

// TestCommitted: the module is what its source gives.
func TestCommitted(t *testing.T) {
	if built := lesson.Module(t, "."); !bytes.Equal(built, committed(t)) {
		t.Error("semver_bump.wasm is not what its source gives: sentinel plugin build")
	}
}

// TestSentinel drops the module into a repository and runs the sentinel.
func TestSentinel(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	lesson.Drop(t, dir, "semver_bump", committed(t))
	git := func(args ...string) {
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)
		lesson.Git(t, dir, args...)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "feat: begin")
	git("tag", "v1.4.2")
	git("commit", "-q", "--allow-empty", "-m", "fix: close the body")
	git("commit", "-q", "--allow-empty", "-m", "feat(cli): add --json\n\nfor programs")
	definition, err := filepath.Abs("semver_bump.json")
	if err != nil {
		t.Fatal(err)
	}
	out, err := lesson.Command(t, dir, "run", definition, "-o", "json").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var end struct {
		Status    string
		Variables struct {
			Next struct {
				Version string
				Reasons []struct{ Level, Commit string }
			}
		}
	}
	if err := json.Unmarshal(out, &end); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	next := end.Variables.Next
	if end.Status != "completed" || next.Version != "v1.5.0" || len(next.Reasons) != 2 || next.Reasons[0].Commit != "feat(cli): add --json" {
		t.Errorf("%s", out)
	}
}
