package code_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// modelTools are what the model of these tests may call.
var modelTools = []string{"code/*", "fs/*"}

func (b *harness) preview(name string, p params) (command.Preview, error) {
	b.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.reg.Preview(b.t.Context(), &command.Call{Command: name, Params: text, By: command.ByModel, Workspace: b.dir, Tools: modelTools})
}

// TestPreviewOfWrites checks what a person sees of a write, that nothing is changed, and
// that the pin is that of the file as it was shown.
func TestPreviewOfWrites(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"a.txt": "one\ntwo\nthree\n", "bin": "\x00\x01"})
	hash := b.hash("a.txt")
	for name, tt := range map[string]struct {
		command string
		params  params
		want    command.Preview
	}{
		"edit": {"code/edit", params{"file_path": "a.txt", "old_string": "two", "new_string": "2\n2.5"}, command.Preview{
			Text: "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2.5\n three", Path: "a.txt", Added: 2, Removed: 1, Pin: map[string]string{"ifHash": hash},
		}},
		"write": {"code/write", params{"path": "./a.txt", "content": "one\n"}, command.Preview{
			Text: "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1 @@\n one\n-two\n-three", Path: "a.txt", Removed: 2, Pin: map[string]string{"ifHash": hash},
		}},
		"new folders": {"code/write", params{"path": "x/y/z.txt", "content": "new\n"}, command.Preview{
			Text: "--- /dev/null\n+++ b/x/y/z.txt\n@@ -0,0 +1 @@\n+new", Path: "x/y/z.txt", Created: true, Added: 1, Pin: map[string]string{"ifHash": "none"},
		}},
		"skill":  {"fs/write", params{"path": "a.txt", "content": "one\ntwo\nthree\n"}, command.Preview{Text: "a.txt stays as it is", Path: "a.txt", Pin: map[string]string{"ifHash": hash}}},
		"binary": {"code/write", params{"path": "bin", "content": "x"}, command.Preview{Text: "bin is a binary file: 2 bytes before, 1 bytes after", Path: "bin", Pin: map[string]string{"ifHash": b.hash("bin")}}},
		"empty":  {"code/write", params{"path": "e", "content": ""}, command.Preview{Text: "e is created empty", Path: "e", Created: true, Pin: map[string]string{"ifHash": "none"}}},
		"odd name": {"code/write", params{"path": "e\n+++ b/x", "content": "1"}, command.Preview{
			Text: "--- /dev/null\n+++ \"b/e\\n+++ b/x\"\n@@ -0,0 +1 @@\n+1", Path: "e\n+++ b/x", Created: true, Added: 1, Pin: map[string]string{"ifHash": "none"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.preview(tt.command, tt.params)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if b.get("a.txt") != "one\ntwo\nthree\n" {
		t.Error("a preview changed a file")
	}
	if _, err := os.Stat(filepath.Join(b.dir, "x")); err == nil {
		t.Error("a preview made a folder")
	}
}

func (b *harness) hash(name string) string {
	b.t.Helper()
	p, err := b.preview("code/write", params{"path": name, "content": ""})
	if err != nil {
		b.t.Fatal(err)
	}
	return p.Pin["ifHash"]
}

// TestPreviewRefuses checks that a call which would be refused is not shown: a person is
// not asked about it.
func TestPreviewRefuses(t *testing.T) {
	b := newHarness(t, code.Options{Run: func(context.Context, *command.Call, string, []string, string) (int, string, error) { return 0, "", nil }},
		map[string]string{"a.txt": "one\n", "certs/server.key": "secret\n"})
	if err := os.Symlink(".git", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		command string
		params  params
		code    abi.Code
		text    string
	}{
		"steering":        {"code/write", params{"path": ".git/hooks/pre-commit", "content": "x"}, abi.Denied, "steer tools"},
		"steers a build":  {"code/write", params{"path": "sub/Makefile", "content": "x"}, abi.Denied, "build executes"},
		"outside":         {"code/write", params{"path": "../x", "content": "x"}, abi.Denied, "outside the workspace"},
		"file as folder":  {"code/write", params{"path": "a.txt/b", "content": "x"}, abi.NotFound, "not a folder"},
		"old text":        {"code/edit", params{"path": "a.txt", "old": "zwei", "new": "x"}, abi.NotFound, "not in the file"},
		"hash":            {"code/write", params{"path": "a.txt", "content": "x", "ifHash": "0"}, abi.Conflict, "has changed"},
		"exists":          {"code/write", params{"path": "a.txt", "content": "x", "ifHash": "none"}, abi.Conflict, "exists now"},
		"missing":         {"code/write", params{"path": "b.txt", "content": "x", "ifHash": "0"}, abi.NotFound, "no such file"},
		"parameters":      {"code/write", params{"path": 3}, abi.BadFields, "content"},
		"no such command": {"code/wrote", params{}, abi.NotFound, "no such command"},
		"not a tool":      {"code/verify", params{}, abi.Denied, "not among the tools"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := b.preview(tt.command, tt.params)
			if abi.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%+v, %v; want %s, %q", p, err, tt.code, tt.text)
			}
		})
	}
}

// TestPreviewHidesSecrets checks that what a question keeps has nothing of a file that
// models do not read.
func TestPreviewHidesSecrets(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"certs/server.key": "hidden\n"})
	p, err := b.preview("code/write", params{"path": "certs/server.key", "content": "mine\n"})
	if err != nil || strings.Contains(p.Text, "hidden") || !strings.Contains(p.Text, "+mine") || len(p.Pin) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestPinnedWrite checks that a call with the pin of its preview does what was shown or
// nothing.
func TestPinnedWrite(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"a.txt": "one\n"})
	for name, tt := range map[string]struct {
		file    string
		command string
		params  params
	}{
		"write": {"a.txt", "code/write", params{"path": "a.txt", "content": "mine\n"}},
		"edit":  {"a.txt", "code/edit", params{"path": "a.txt", "old": "one", "new": "mine"}},
		"new":   {"n.txt", "code/write", params{"path": "n.txt", "content": "mine\n"}},
		"skill": {"n.txt", "fs/write", params{"path": "n.txt", "content": "mine\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			b.put("a.txt", "one\n")
			_ = os.Remove(filepath.Join(b.dir, "n.txt"))
			p, err := b.preview(tt.command, tt.params)
			if err != nil {
				t.Fatal(err)
			}
			tt.params["ifHash"] = p.Pin["ifHash"]
			b.put(tt.file, "one\nof another\n")
			if _, err := b.try(command.ByUser, tt.command, tt.params); abi.CodeOf(err) != abi.Conflict {
				t.Errorf("written over a change: %v", err)
			}
			b.put("a.txt", "one\n")
			_ = os.Remove(filepath.Join(b.dir, "n.txt"))
			for range 2 { // repeated after a crash
				if _, err := b.try(command.ByUser, tt.command, tt.params); err != nil && name != "edit" {
					t.Error(err)
				}
			}
			if b.get(tt.file) != "mine\n" {
				t.Errorf("%q", b.get(tt.file))
			}
		})
	}
}

// TestLineCounts checks the lines that a write reports.
func TestLineCounts(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"a.txt": "1\n2\n3\n"})
	out, err := b.try(command.ByUser, "code/edit", params{"path": "a.txt", "old": "1\n2\n3", "new": "1\nzwei\n3"})
	if err != nil || out["added"] != 1.0 || out["removed"] != 1.0 {
		t.Errorf("%v, %v", out, err)
	}
	out, err = b.try(command.ByUser, "code/write", params{"path": "b.txt", "content": strings.Repeat("x\n", 5)})
	if err != nil || out["added"] != 5.0 || out["removed"] != nil {
		t.Errorf("%v, %v", out, err)
	}
}
