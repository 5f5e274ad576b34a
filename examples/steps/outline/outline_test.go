package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestMain(m *testing.M) { lesson.Main(m) }

func TestManifest(t *testing.T) { sdktest.Manifest(t, plugin) }

func TestCases(t *testing.T) { lesson.Cases(t, ".", lesson.Module(t, ".")) }

func TestCasesNative(t *testing.T) { sdktest.Cases(t, plugin, sdktest.CasesFile) }

// TestItself outlines the sources of this plugin: each function is where it is declared.
func TestItself(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g goLines
		var found, want []string
		for _, line := range strings.Split(string(text), "\n") {
			for _, s := range g.line(line) {
				if s.kind == "function" || s.kind == "method" {
					found = append(found, s.name)
				}
			}
			if rest, ok := strings.CutPrefix(line, "func "); ok {
				if strings.HasPrefix(rest, "(") {
					_, rest, _ = strings.Cut(rest, ") ")
				}
				name, _, _ := strings.Cut(rest, "(")
				want = append(want, name)
			}
		}
		if strings.Join(found, " ") != strings.Join(want, " ") || len(want) == 0 {
			t.Errorf("%s: %q, want %q", file, found, want)
		}
	}
}

// FuzzLines: no file ends an outline with a panic, and symbols have names.
func FuzzLines(f *testing.F) {
	f.Add("func (a *b) c() {\n`\n")
	f.Add("class A:\n\tdef b(self): '''\n")
	f.Add("class A { b() { return `${`\\` } }")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range languages {
			in := l.new()
			for _, line := range strings.Split(text, "\n") {
				for _, s := range in.line(line) {
					if s.name == "" || s.kind == "" {
						t.Errorf("%s: %q has the symbol %+v", l.name, line, s)
					}
				}
			}
		}
	})
}

// TestAModelCallsIt drops the module into a project and runs the sentinel: a model calls the
// command, and then reads the lines that it found.
func TestAModelCallsIt(t *testing.T) {
	dir := t.TempDir()
	module := lesson.Module(t, ".")
	var listed, read string
	lesson.Serve(t, func(a lesson.Asked) lesson.Answer {
		switch a.Results() {
		case 0:
			return lesson.Answer{Tool: "outline_symbols", Args: map[string]any{"path": "shop.py"}}
		case 1:
			listed = a.Text("tool")
			var out struct {
				Symbols []struct {
					Name string
					Line int
				}
			}
			if err := json.Unmarshal([]byte(listed), &out); err != nil {
				return lesson.Answer{Text: "not an outline: " + listed}
			}
			for _, s := range out.Symbols {
				if s.Name == "total" {
					return lesson.Answer{Tool: "code_read", Args: map[string]any{"path": "shop.py", "offset": s.Line, "limit": 2}}
				}
			}
			return lesson.Answer{Text: "there is no total"}
		}
		read = a.Text("tool")
		return lesson.Answer{Text: "It adds up prices."}
	})
	lesson.Drop(t, dir, "outline", module)
	source := strings.Repeat("# a long file\n", 500) + "class Shop:\n    def total(self, prices):\n        return sum(prices)\n"
	if err := os.WriteFile(filepath.Join(dir, "shop.py"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := lesson.Command(t, dir, "plugin", "allow", "outline", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	definition, err := filepath.Abs("outline.json")
	if err != nil {
		t.Fatal(err)
	}
	cmd := lesson.Command(t, dir, "run", definition, "--input", "file=shop.py", "-o", "json")
	cmd.Env = append(cmd.Env, "OPENAI_API_KEY=scripted")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(listed, `"line":502`) || !strings.Contains(read, "return sum(prices)") || !strings.Contains(string(out), "It adds up prices.") {
		t.Errorf("listed %s\nread %s\n%s", listed, read, out)
	}
	// By a person, at the command line.
	said, err := lesson.Command(t, dir, "exec", "outline/symbols", "--path", "shop.py").CombinedOutput()
	if err != nil || !strings.Contains(string(said), `"name": "total"`) {
		t.Errorf("%v\n%s", err, said)
	}
}
