package markdown_table_test

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

// TestSentinel drops the module into a project and runs the sentinel.
func TestSentinel(t *testing.T) {
	dir := t.TempDir()
	lesson.Drop(t, dir, "markdown_table", lesson.Module(t, "."))
	for name, size := range map[string]int{"small": 10, "big|one": 100_000} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "file"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	definition, err := filepath.Abs("markdown_table.json")
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
			Report struct {
				Markdown string
				Rows     int
				Totals   map[string]float64
			}
		}
	}
	if err := json.Unmarshal(out, &end); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	report := end.Variables.Report
	lines := strings.Split(report.Markdown, "\n")
	if end.Status != "completed" || report.Rows != 2 || report.Totals["kilobytes"] < 100 || len(lines) != 5 ||
		!strings.HasPrefix(lines[2], `| big\|one/ `) || !strings.HasPrefix(lines[4], "| **Total** ") {
		t.Errorf("%s\n%s", out, report.Markdown)
	}
}
