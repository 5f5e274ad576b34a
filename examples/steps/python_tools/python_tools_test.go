package python_tools_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
)

func TestMain(m *testing.M) { lesson.Main(m) }

func TestCases(t *testing.T) { lesson.Cases(t, ".", lesson.Module(t, ".")) }

// TestNode runs the same cases under node.
func TestNode(t *testing.T) {
	if err := exec.Command("node", "--version").Run(); err != nil {
		t.Skipf("the cases are not run under node: node --version: %v; `make toolchains` installs it", err)
	}
	if out, err := exec.Command("node", "--test", "plugin.test.mjs").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// python stands for the program: pip needs three attempts, and the tests fail while the
// session goes on.
const python = `#!/bin/sh
case "$2" in
pip)
	echo x >> attempts
	test "$(wc -l < attempts)" -ge 3 && exit 0
	echo "HTTPSConnectionPool(host='pypi.org', port=443): Read timed out. (ReadTimeoutError)" >&2
	exit 1 ;;
pytest)
	echo "rootdir: /work"
	echo "tests/test_a.py ..   [ 66%]"
	echo "tests/test_b.py F    [100%]"
	sleep 600 ;;
esac
`

// TestSentinel drops the module into a project and runs the sentinel with a python of its
// own: both classifiers decide.
func TestSentinel(t *testing.T) {
	dir := t.TempDir()
	lesson.Drop(t, dir, "python_tools", lesson.Module(t, "."))
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "python"), []byte(python), 0o755); err != nil {
		t.Fatal(err)
	}
	// The delays of the table are seconds; the test is about the decision.
	text, err := os.ReadFile("python_tools.json")
	if err != nil {
		t.Fatal(err)
	}
	definition := filepath.Join(dir, "python_tools.json")
	if err := os.WriteFile(definition, []byte(strings.Replace(string(text), `"retry": {}`, `"retry": { "baseDelayMs": 1, "maxDelayMs": 1 }`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := lesson.Command(t, dir, args...)
		cmd.Env = append(cmd.Env, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		return cmd
	}
	if out, err := command("validate", definition).CombinedOutput(); err == nil || !strings.Contains(string(out), "sentinel plugin allow python_tools") {
		t.Errorf("before it is allowed: %v\n%s", err, out)
	}
	if out, err := command("plugin", "allow", "python_tools", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := command("run", definition, "-o", "jsonl").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var categories []string
	var end struct {
		Status    string
		Variables struct {
			Seen struct {
				Finished bool
				Lines    []struct{ Text, Classification string }
			}
		}
	}
	for line := range strings.Lines(string(out)) {
		var p struct{ Event, Category string }
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if p.Event == "retry" {
			categories = append(categories, p.Category)
		}
		if p.Event == "" {
			if err := json.Unmarshal([]byte(line), &end); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := end.Variables.Seen
	if end.Status != "completed" || strings.Join(categories, " ") != "api api" || seen.Finished || len(seen.Lines) != 1 || seen.Lines[0].Classification != "error" || !strings.HasPrefix(seen.Lines[0].Text, "tests/test_b.py F") {
		t.Errorf("%s, retries %q, %+v\n%s", end.Status, categories, seen, out)
	}
}
