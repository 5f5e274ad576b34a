package buildfix_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const (
	definition = "build-fix.json"
	recording  = "cassette.jsonl"
)

func TestMain(m *testing.M) { lesson.Main(m) }

// model is what the recording says: a model that reads what the error names,
// edits, and explains itself.
func model(t *testing.T) lesson.Model {
	return func(a lesson.Asked) lesson.Answer {
		prompt := a.Text("user")
		switch compile := strings.Contains(prompt, "line.Prize undefined"); {
		case compile && a.Results() == 0:
			return lesson.Answer{
				Text: "The compiler does not know line.Prize. I look at the type.",
				Tool: "code_read", Args: map[string]any{"path": "invoice/invoice.go"},
			}
		case compile && a.Results() == 1:
			return lesson.Answer{Tool: "code_edit", Args: map[string]any{
				"path": "invoice/invoice.go", "old": "line.Prize", "new": "line.Price",
			}}
		case compile:
			return lesson.Answer{Text: "The field is called Price; line.Prize was a typing mistake."}
		case !strings.Contains(prompt, "50% off = 724, want 725"):
			t.Errorf("an unexpected prompt: %q", prompt)
			return lesson.Answer{Text: "I do not know."}
		case a.Results() == 0:
			return lesson.Answer{
				Text: "It compiles, and a test fails by one cent. I read what the test wants.",
				Tool: "code_read", Args: map[string]any{"path": "invoice/invoice_test.go"},
			}
		case a.Results() == 1:
			return lesson.Answer{Tool: "code_read", Args: map[string]any{"path": "invoice/invoice.go"}}
		case a.Results() == 2:
			return lesson.Answer{Tool: "code_edit", Args: map[string]any{
				"path": "invoice/invoice.go",
				"old":  "return sum * (100 - discount) / 100",
				"new":  "return (sum*(100-discount) + 50) / 100",
			}}
		}
		return lesson.Answer{Text: "The division cut half a cent off, where the comment promises to round it up."}
	}
}

// TestRepair is the demo without its talk: from the recording alone a broken
// project becomes a green one, with one commit more.
func TestRepair(t *testing.T) {
	ws := lesson.Workspace(t)
	h, res := lesson.Run(t, definition, ws, host.Options{Replay: recording}, runtime.StartOptions{})
	if res.Status != sentinels.StatusCompleted || res.Iterations != 3 {
		t.Fatalf("%s after %d iterations, want 3: %v", res.Status, res.Iterations, res.Error)
	}
	lesson.NoDivergence(t, h)
	repaired(t, ws)
}

// repaired checks what the demo promises of the project.
func repaired(t *testing.T, ws string) {
	t.Helper()
	if out, err := lesson.Go(ws, "test", "./..."); err != nil {
		t.Errorf("the tests are red: %v\n%s", err, out)
	}
	if got := lesson.Git(t, ws, "log", "--format=%an: %s"); got != "Build Fix: Repair the build\nBuild Fix: Add invoices" {
		t.Errorf("commits:\n%s", got)
	}
	if got := lesson.Git(t, ws, "show", "--format=", "--name-only", "HEAD"); got != "invoice/invoice.go" {
		t.Errorf("the commit changes %q", got)
	}
	if got := lesson.Git(t, ws, "status", "--porcelain"); got != "" {
		t.Errorf("not committed:\n%s", got)
	}
}

// TestOtherWords: another compiler may word its error otherwise. Then the
// prompt is not the recorded one; the recording answers in its order all the
// same, and the difference is reported.
func TestOtherWords(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: one replay is enough")
	}
	src, err := os.ReadFile(definition)
	if err != nil {
		t.Fatal(err)
	}
	altered := strings.Replace(string(src), "The build or the tests fail:", "In other words:", 1)
	if altered == string(src) {
		t.Fatal("the prompt of build-fix.json has changed; change this test too")
	}
	file := filepath.Join(t.TempDir(), definition)
	if err := os.WriteFile(file, []byte(altered), 0o644); err != nil {
		t.Fatal(err)
	}
	ws := lesson.Workspace(t)
	h, res := lesson.Run(t, file, ws, host.Options{Replay: recording}, runtime.StartOptions{})
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s after %d iterations: %v", res.Status, res.Iterations, res.Error)
	}
	repaired(t, ws)
	if got, want := h.Divergences(), len(lesson.Entries(t, recording)); got != want {
		t.Errorf("%d divergences, want one for each of the %d turns", got, want)
	}
	var report strings.Builder
	if err := h.WriteDivergences(&report); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(report.String(), "messages[0].content") || !strings.Contains(report.String(), "In other words:") {
		t.Errorf("the report does not show the prompt:\n%s", report.String())
	}
}

// TestDemo runs what make demo runs.
func TestDemo(t *testing.T) {
	out, err := lesson.Script(t, "demo.sh")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lesson.Shows(t, out,
		"line.Prize undefined",                                         // it was broken
		"come from a recording",                                        // it says where answers come from
		"no divergence",                                                // all of them fitted
		"ok  \texample.com/shop/invoice",                               // it is green
		"Repair the build",                                             // and committed
		"+\treturn (sum*(100-discount) + 50) / 100",                    // this is the repair
		" trace -v build-fix", " logs build-fix", "examples/README.md", // where to look next
	)
}

// TestDemoLive: with a model in the environment that one is asked, and what it
// says is recorded.
func TestDemoLive(t *testing.T) {
	out, err := lesson.LiveScript(t, "demo.sh", model(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lesson.Shows(t, out, "your environment names is asked", "--record", "ok  \texample.com/shop/invoice", "Repair the build")
	if strings.Contains(out, "cassette.jsonl: 7 requests") {
		t.Errorf("the recording answered:\n%s", out)
	}
}

// TestDemoFails: with a recording that ends too early the project stays red,
// and the demo says so with its exit code.
func TestDemoFails(t *testing.T) {
	// The script finds its files by its own place, so it has to move with them.
	examples := t.TempDir()
	here := filepath.Join(examples, "build-fix")
	if err := os.CopyFS(here, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	begin, err := os.ReadFile("../lesson.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(examples, "lesson.sh"), begin, 0o644); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	if err := os.WriteFile(filepath.Join(here, recording), bytes.Join(lines[:4], nil), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	out, err := lesson.Script(t, "demo.sh")
	if err == nil || !strings.Contains(out, "demo: the run ended with exit code 1") || !strings.Contains(out, "all 3 turns are used") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestCassette records the model above and replays it.
func TestCassette(t *testing.T) {
	lesson.Cassette(t, definition, recording, model(t), runtime.StartOptions{})
}
