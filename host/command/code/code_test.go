package code_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A harness has a workspace and the commands on its files.
type harness struct {
	t   *testing.T
	dir string
	reg *command.Registry
	// tools is what a model may call; nil for every public command
	tools []string
}

func newHarness(t *testing.T, opt code.Options, files map[string]string) *harness {
	t.Helper()
	b := &harness{t: t, dir: t.TempDir()}
	for name, text := range files {
		b.put(name, text)
	}
	var err error
	if b.reg, err = command.NewRegistry(code.Commands(opt)...); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *harness) put(name, text string) {
	b.t.Helper()
	full := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *harness) get(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

type params map[string]any

func (b *harness) try(by command.By, name string, p params) (map[string]any, error) {
	b.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.reg.Call(b.t.Context(), &command.Call{Command: name, Params: text, By: by, Workspace: b.dir, Tools: b.tools})
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(out, &m); err != nil {
		b.t.Fatal(err)
	}
	return m, nil
}

func (b *harness) do(name string, p params) map[string]any {
	b.t.Helper()
	m, err := b.try(command.ByStep, name, p)
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, p, err)
	}
	return m
}

func TestRead(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"a.txt": "one\ntwo\nthree", "sub/b.txt": "", "crlf.txt": "x\r\ny\r\n", "latin.txt": "caf\xe9\n"})
	tests := []struct {
		name string
		in   params
		want params
	}{
		{"whole", params{"path": "a.txt"}, params{"content": "one\ntwo\nthree", "lines": 3.0, "totalLines": 3.0, "truncated": false}},
		{"from a line", params{"path": "a.txt", "offset": 2}, params{"content": "two\nthree", "startLine": 2.0, "lines": 2.0}},
		{"some lines", params{"path": "a.txt", "offset": 1, "limit": 1}, params{"content": "one\n", "truncated": true, "nextOffset": 2.0}},
		{"numbered", params{"path": "a.txt", "limit": 1, "numbered": true}, params{"content": "     1\tone\n"}},
		{"empty", params{"path": "sub/b.txt"}, params{"content": "", "totalLines": 0.0, "lines": 0.0}},
		{"absolute inside", params{"path": filepath.Join(b.dir, "a.txt"), "limit": 1}, params{"path": "a.txt", "content": "one\n"}},
		{"dots inside", params{"path": "sub/../a.txt", "limit": 1}, params{"path": "a.txt"}},
		{"line ends stay", params{"path": "crlf.txt"}, params{"content": "x\r\ny\r\n", "lines": 2.0}},
		{"not UTF-8", params{"path": "latin.txt"}, params{"content": "caf\uFFFD\n", "lossy": true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := b.do("code/read", tt.in)
			for k, want := range tt.want {
				if diff := cmp.Diff(want, got[k]); diff != "" {
					t.Errorf("%s: %s", k, diff)
				}
			}
		})
	}
}

func TestReadLargeFileInParts(t *testing.T) {
	b := newHarness(t, code.Options{}, nil)
	want := strings.Repeat(strings.Repeat("\x01", 99)+"\n", 3000) // each byte is six bytes in JSON
	b.put("big", want)
	var got strings.Builder
	for offset := 1.0; ; {
		out := b.do("code/read", params{"path": "big", "offset": offset})
		text, err := json.Marshal(out)
		if err != nil || len(text) > 256<<10 {
			t.Fatalf("a result has %d bytes, %v", len(text), err)
		}
		got.WriteString(out["content"].(string))
		next, more := out["nextOffset"].(float64)
		if !more {
			break
		}
		offset = next
	}
	if got.String() != want {
		t.Error("the parts together differ from the file")
	}
}

func TestReadRefuses(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"main.go": "x", "bin": "a\x00b", "lib/store.go": "y"})
	tests := []struct {
		path string
		code abi.Code
		hint string
	}{
		{"mian.go", abi.NotFound, "main.go"},
		{"store.go", abi.NotFound, "lib/store.go"},
		{"main.go/x", abi.NotFound, ""},
		{"bin", abi.BadFields, ""},
		{"lib", abi.BadFields, "code/tree"},
		{"../x", abi.Denied, "relative"},
		{"/etc/passwd", abi.Denied, ""},
		{"lib/../../x", abi.Denied, ""},
		{"a\x00b", abi.BadFields, ""},
	}
	for _, tt := range tests {
		_, err := b.try(command.ByStep, "code/read", params{"path": tt.path})
		if e := abi.As(err); e == nil || e.Code != tt.code || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%q: got %+v, want %s", tt.path, e, tt.code)
		}
	}
}

func TestWrite(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"run.sh": "old"})
	if err := os.Chmod(filepath.Join(b.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := b.do("code/write", params{"path": "run.sh", "content": "new"})
	info, err := os.Stat(filepath.Join(b.dir, "run.sh"))
	if err != nil || info.Mode().Perm() != 0o755 || b.get("run.sh") != "new" || out["created"] != false {
		t.Errorf("mode %v, text %q, %v, %v", info.Mode(), b.get("run.sh"), out, err)
	}
	if out = b.do("code/write", params{"path": "a/b/c.txt", "content": "x"}); out["created"] != true || b.get("a/b/c.txt") != "x" {
		t.Errorf("got %v", out)
	}
	if _, err := b.try(command.ByStep, "code/write", params{"path": "no/such.txt", "content": "x", "createDirs": false}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("without createDirs: %v", err)
	}
	if _, err := b.try(command.ByStep, "code/write", params{"path": "run.sh", "content": "y", "ifHash": "00"}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("stale hash: %v", err)
	}
	hash := b.do("code/read", params{"path": "run.sh"})["hash"]
	for range 2 { // the second call is one that is repeated after a crash
		b.do("code/write", params{"file_path": "run.sh", "content": "y", "ifHash": hash})
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestEdit(t *testing.T) {
	const start = "alpha\nbeta\nbeta\ngamma\n"
	tests := []struct {
		name string
		in   params
		want string
		code abi.Code
		text string // part of message or hint
	}{
		{"one", params{"old": "alpha", "new": "omega"}, "omega\nbeta\nbeta\ngamma\n", "", ""},
		{"aliases", params{"search": "alpha", "replace": "omega"}, "omega\nbeta\nbeta\ngamma\n", "", ""},
		{"remove", params{"old": "alpha\n"}, "beta\nbeta\ngamma\n", "", ""},
		{"all", params{"old": "beta", "new": "b", "replaceAll": true}, "alpha\nb\nb\ngamma\n", "", ""},
		{"list", params{"edits": []params{{"old": "alpha", "new": "x"}, {"old": "x\nbeta", "new": "y"}}}, "y\nbeta\ngamma\n", "", ""},
		{"list all or none", params{"edits": []params{{"old": "alpha", "new": "x"}, {"old": "nothere", "new": "y"}}}, "", abi.NotFound, "edit 2 of 2"},
		{"twice", params{"old": "beta", "new": "b"}, "", abi.Conflict, "at lines 2, 3"},
		{"missing", params{"old": "alpa", "new": "b"}, "", abi.NotFound, "at line 1"},
		{"white space", params{"old": "  alpha\n  beta", "new": "b"}, "", abi.NotFound, "with other white space it is at line 1"},
		{"nothing like it", params{"old": "0123456789", "new": "b"}, "", abi.NotFound, "nothing in the file"},
		{"empty old", params{"old": "", "new": "b"}, "", abi.BadFields, "is empty"},
		{"same", params{"old": "beta", "new": "beta"}, "", abi.BadFields, "equals"},
		{"both forms", params{"old": "a", "edits": []params{{"old": "b"}}}, "", abi.BadFields, "replaces old and new"},
		{"stale", params{"old": "alpha", "new": "b", "ifHash": "x"}, "", abi.Conflict, "has changed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newHarness(t, code.Options{}, map[string]string{"f": start})
			tt.in["path"] = "f"
			_, err := b.try(command.ByStep, "code/edit", tt.in)
			want := tt.want
			if tt.code != "" {
				want = start
				if e := abi.As(err); e == nil || e.Code != tt.code || !strings.Contains(e.Message+e.Hint, tt.text) {
					t.Errorf("got %+v", e)
				}
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, b.get("f")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEditKeepsLineEnds(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"f": "a\r\nb\r\nc\r\n"})
	out := b.do("code/edit", params{"path": "f", "old": "a\nb", "new": "x\ny\nz"})
	if got := b.get("f"); got != "x\r\ny\r\nz\r\nc\r\n" {
		t.Errorf("got %q", got)
	}
	want := []any{map[string]any{"line": 1.0, "removed": 2.0, "added": 3.0}}
	if diff := cmp.Diff(want, out["changes"]); diff != "" {
		t.Error(diff)
	}
}

func TestSearch(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{
		"main.go": "package main\n\nfunc main() {\n\tpanic(1)\n}\n", "lib/a.go": "package lib\nfunc A() {}\n", "lib/a.ts": "func no\n", "bin": "func\x00",
		"node_modules/x.go": "func hidden", ".git/x.go": "func hidden", "gen/x.go": "func hidden", ".gitignore": "gen/\n*.log\n!keep.log\n", "a.log": "func", "keep.log": "func kept",
		"lib/.gitignore": "/b.go\n", "lib/b.go": "func ignored", "lib/sub/b.go": "func deep",
	})
	paths := func(p params) []string {
		t.Helper()
		var got []string
		for _, m := range b.do("code/search", p)["matches"].([]any) {
			got = append(got, m.(map[string]any)["path"].(string))
		}
		return got
	}
	tests := []struct {
		name string
		in   params
		want []string
	}{
		{"all but ignored", params{"pattern": "func"}, []string{"keep.log", "lib/a.go", "lib/a.ts", "lib/sub/b.go", "main.go"}},
		{"glob", params{"pattern": "func", "glob": "*.go"}, []string{"lib/a.go", "lib/sub/b.go", "main.go"}},
		{"glob with folder", params{"pattern": "func", "glob": "lib/*.{go,ts}"}, []string{"lib/a.go", "lib/a.ts"}},
		{"deep glob", params{"pattern": "func", "glob": "lib/**/*.go"}, []string{"lib/a.go", "lib/sub/b.go"}},
		{"glob in the first folder", params{"pattern": "func", "glob": "./*.go"}, []string{"main.go"}},
		{"glob with a dot", params{"pattern": "func", "glob": "./lib/**"}, []string{"lib/a.go", "lib/a.ts", "lib/sub/b.go"}},
		{"glob with a class", params{"pattern": "func", "glob": "lib/[!b].t[s]"}, []string{"lib/a.ts"}},
		{"glob of ignored files", params{"pattern": "func", "glob": "{gen,.git}/*.go", "all": true}, []string{".git/x.go", "gen/x.go"}},
		{"folder", params{"pattern": "func", "path": "lib"}, []string{"lib/a.go", "lib/a.ts", "lib/sub/b.go"}},
		{"file", params{"pattern": "func", "path": "lib/a.go"}, []string{"lib/a.go"}},
		{"anchors are per line", params{"pattern": `^}$`}, []string{"main.go"}},
		{"end of text is per line", params{"pattern": `main\z`}, []string{"main.go"}},
		{"case", params{"pattern": "PACKAGE LIB", "ignoreCase": true}, []string{"lib/a.go"}},
		{"literal", params{"pattern": "main() {", "literal": true}, []string{"main.go"}},
		{"everything", params{"pattern": "hidden", "all": true}, []string{".git/x.go", "gen/x.go", "node_modules/x.go"}},
		{"nothing", params{"pattern": "zzz"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, paths(tt.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
	out := b.do("code/search", params{"pattern": `pan(ic)`, "context": 1})
	want := []any{map[string]any{"path": "main.go", "line": 4.0, "column": 2.0, "text": "\tpanic(1)", "before": []any{"func main() {"}, "after": []any{"}"}}}
	if diff := cmp.Diff(want, out["matches"]); diff != "" {
		t.Error(diff)
	}
	if out["text"] != "main.go-3- func main() {\nmain.go:4: \tpanic(1)\nmain.go-5- }\n" {
		t.Errorf("text is %q", out["text"])
	}
	if out := b.do("code/search", params{"pattern": "func", "maxResults": 2}); out["truncated"] != true || len(out["matches"].([]any)) != 2 {
		t.Errorf("got %v", out)
	}
	for _, bad := range []string{"[", "{a", "../x", "a//b", strings.Repeat("a", 2000)} {
		if _, err := b.try(command.ByStep, "code/search", params{"pattern": "x", "glob": bad}); abi.CodeOf(err) != abi.BadFields || abi.As(err).Field != "glob" {
			t.Errorf("glob %.20q: %v", bad, err)
		}
	}
	for _, bad := range []string{"main(", "", strings.Repeat("a", 2000), "(a{1000}){1000}"} {
		if _, err := b.try(command.ByStep, "code/search", params{"pattern": bad}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("pattern %.20q: %v", bad, err)
		}
	}
}

func TestTree(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"a/b/c/d.txt": "1234", "a/z.txt": "", "top.txt": "", "out/x": "", ".gitignore": "out\n", "node_modules/x": ""})
	if err := os.Symlink("a", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	want := ".gitignore\na/\n  b/\n    c/\n      d.txt\n  z.txt\nlink@\ntop.txt\n"
	if diff := cmp.Diff(want, b.do("code/tree", nil)["text"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("b/\nz.txt\n", b.do("code/tree", params{"path": "link", "depth": 1})["text"]); diff != "" {
		t.Error(diff)
	}
	out := b.do("code/tree", params{"maxEntries": 4})
	if diff := cmp.Diff(".gitignore\na/\nlink@\ntop.txt\n… and more\n", out["text"]); diff != "" {
		t.Errorf("a limit must leave the first level complete: %s", diff)
	}
	if out["truncated"] != true {
		t.Error("not marked as truncated")
	}
	if _, err := b.try(command.ByStep, "code/tree", params{"path": "top.txt"}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("a file: %v", err)
	}
}

func TestVerify(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		in    params
		fails string // argv that ends with exit code 1
		want  []string
		ok    bool
	}{
		{"go", map[string]string{"go.mod": "module x"}, nil, "", []string{"go build -o /dev/null ./...", "go vet ./..."}, true},
		{"go tests", map[string]string{"go.mod": "module x"}, params{"fullTest": true}, "go test ./...", []string{"go build -o /dev/null ./...", "go vet ./...", "go test ./..."}, false},
		{"build broken", map[string]string{"go.mod": "module x"}, params{"fullTest": true}, "go build -o /dev/null ./...", []string{"go build -o /dev/null ./...", "-go vet ./...", "-go test ./..."}, false},
		{"node", map[string]string{"package.json": `{"scripts":{"build":"tsc","test":"jest"}}`, "yarn.lock": ""}, params{"fullTest": true}, "", []string{"yarn run build", "yarn run test"}, true},
		{"node with tests alone", map[string]string{"package.json": `{"scripts":{"test":"jest"}}`}, nil, "", []string{"npm run test"}, true},
		{"make", map[string]string{"Makefile": "X := 1\nbuild: a\n\tcc\ntest:\n\t./t\n"}, params{"fullTest": true}, "", []string{"make build", "make test"}, true},
		{"make default", map[string]string{"Makefile": "prog: a.c\n\tcc\n"}, nil, "", []string{"make"}, true},
		{"make beside go", map[string]string{"Makefile": "build:\n", "go.mod": ""}, nil, "", []string{"go build -o /dev/null ./...", "go vet ./..."}, true},
		{"sub folder", map[string]string{"sub/Cargo.toml": ""}, params{"path": "sub"}, "", []string{"cargo build --all-targets"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := func(_ context.Context, _ *command.Call, _ string, argv []string, _ string) (int, string, error) {
				if strings.Join(argv, " ") == tt.fails {
					return 1, "it is broken\n", nil
				}
				return 0, "fine\n", nil
			}
			b := newHarness(t, code.Options{Run: run}, tt.files)
			out := b.do("code/verify", tt.in)
			var got []string
			for _, s := range out["steps"].([]any) {
				step := s.(map[string]any)
				var argv []string
				for _, a := range step["argv"].([]any) {
					argv = append(argv, a.(string))
				}
				line := strings.Join(argv, " ")
				if step["skipped"] == true {
					line = "-" + line
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if out["success"] != tt.ok || !tt.ok && !strings.Contains(out["output"].(string), "it is broken") {
				t.Errorf("success %v, output %q", out["success"], out["output"])
			}
		})
	}
	run := func(context.Context, *command.Call, string, []string, string) (int, string, error) { return 0, "", nil }
	for _, files := range []map[string]string{{}, {"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}} {
		if _, err := newHarness(t, code.Options{Run: run}, files).try(command.ByStep, "code/verify", params{"fullTest": true}); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("%v: %v", files, err)
		}
	}
	if _, err := newHarness(t, code.Options{Run: run}, map[string]string{"package.json": "{"}).try(command.ByStep, "code/verify", nil); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("broken package.json: %v", err)
	}
}

// TestModelsDoNotReadSecretFiles checks that models, and only models, are refused
// files that hold secrets, also through a link, and a private key of any name.
func TestModelsDoNotReadSecretFiles(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nneedle\n-----END PRIVATE KEY-----\n"
	files := map[string]string{
		".env": "TOKEN=needle\n", "sub/.env.local": "needle\n", "certs/server.pem": "needle\n", "certs/other.pem": "needle\n", "notes.txt": key,
		"token/list.txt": "needle\n", "main.go": "needle\n", ".env.example": "needle\n",
	}
	b := newHarness(t, code.Options{Rules: command.FileRules{Readable: []string{"certs/other.pem"}}}, files)
	if err := os.Symlink(".env", filepath.Join(b.dir, "innocent.md")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", "sub/.env.local", "certs/server.pem", "notes.txt", "innocent.md"} {
		for _, c := range []struct {
			command string
			p       params
		}{{"code/read", params{"path": name}}, {"code/edit", params{"path": name, "old": "needle", "new": "x"}}} {
			out, err := b.try(command.ByModel, c.command, c.p)
			e := abi.As(err)
			if e == nil || e.Code != abi.Denied || strings.Contains(fmt.Sprint(out, e.Message), "needle") {
				t.Errorf("%s %q by a model: %v, %v", c.command, name, out, err)
			} else if c.command == "code/read" && !strings.Contains(e.Hint, "models.secretFiles") {
				t.Errorf("%s %q: the hint does not name the setting: %q", c.command, name, e.Hint)
			}
		}
		if out, err := b.try(command.ByStep, "code/read", params{"path": name}); err != nil || !strings.Contains(fmt.Sprint(out), "needle") {
			t.Errorf("code/read %q by a step: %v, %v", name, out, err)
		}
	}
	for _, name := range []string{"certs/other.pem", "token/list.txt", "main.go", ".env.example"} {
		if _, err := b.try(command.ByModel, "code/read", params{"path": name}); err != nil {
			t.Errorf("code/read %q by a model: %v", name, err)
		}
	}
	found := func(by command.By) (paths []string, skipped any) {
		out, err := b.try(by, "code/search", params{"pattern": "needle", "all": true})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out["matches"].([]any) {
			paths = append(paths, m.(map[string]any)["path"].(string))
		}
		slices.Sort(paths)
		return paths, out["skipped"]
	}
	got, skipped := found(command.ByModel)
	if diff := cmp.Diff([]string{".env.example", "certs/other.pem", "main.go", "token/list.txt"}, got); diff != "" || fmt.Sprint(skipped) != "4" {
		t.Errorf("a model finds (-want +got):\n%s\nskipped %v, want 4", diff, skipped)
	}
	if got, _ := found(command.ByStep); len(got) != len(files) {
		t.Errorf("a step finds %v", got)
	}
	if _, err := b.try(command.ByModel, "code/search", params{"pattern": "needle", "path": ".env"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a search in .env: %v", err)
	}
	if out, err := b.try(command.ByModel, "code/tree", params{"path": "token"}); err != nil {
		t.Errorf("a folder with such a name: %v, %v", out, err)
	}
}
