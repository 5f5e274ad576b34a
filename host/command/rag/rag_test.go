package rag_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/rag"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// write creates files in a new folder.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var day = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fakeData provides the data of all sources.
type fakeData struct {
	changes []rag.Change
	err     error
}

func (p fakeData) Status(context.Context, string) (rag.GitStatus, error) {
	return rag.GitStatus{Branch: "main", Upstream: "origin/main", Ahead: 2, Changes: p.changes}, p.err
}

func (p fakeData) Log(context.Context, string, int) ([]rag.Commit, error) {
	return []rag.Commit{{Hash: "0123456789abcdef", Author: "ann", Time: day, Subject: "first"}}, p.err
}

func (p fakeData) RecentMessages(_ context.Context, room string, _ int) ([]rag.ChatMessage, error) {
	return []rag.ChatMessage{{From: "ann", Text: "in " + room + "\nsecond line", Time: day}, {From: "bob", Text: "yes", Time: day}}, p.err
}

func (p fakeData) RecentFailures(context.Context, string, sentinels.RunID, int) ([]rag.Failure, error) {
	return []rag.Failure{{Time: day, Sentinel: "build", Step: "1#2.then.0", Code: "timeout", Message: "took too long"}}, p.err
}

func (p fakeData) RecentActivity(context.Context, string, int) ([]rag.ActivityLine, error) {
	return []rag.ActivityLine{{day, "run started"}}, p.err
}

func (p fakeData) RecipeSources(_ context.Context, name string) ([]string, error) {
	if name == "own" {
		return []string{"file:a.txt", "failures"}, nil
	}
	return nil, abi.New(abi.NotFound, "recipe not found")
}

func all(p fakeData) rag.Options {
	return rag.Options{Git: p, Chat: p, Failures: p, Activity: p, Recipes: p}
}

func build(t testing.TB, opt rag.Options, req rag.Request) rag.Result {
	t.Helper()
	got, err := rag.New(opt).Build(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

var project = map[string]string{
	"README.md":               "# Project\nIt sells tea.\n",
	".gitignore":              "*.log\n/out/\n!keep.log\n",
	"src/cart.go":             "package src\n\nfunc AddToCart() {}\n",
	"src/price.go":            "package src\n\n// Price adds the tax.\nfunc Price() {}\n",
	"src/deep/er/x.txt":       "deep\n",
	"debug.log":               "noise\n",
	"src/keep.log":            "kept\n",
	"out/gen.txt":             "generated\n",
	"node_modules/m/index.js": "module\n",
	".env":                    "TOKEN=hunter2\n",
	"conf/server.pem":         "hunter2\n",
	"conf/id_rsa":             "hunter2\n",
	"conf/notes":              "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n",
	".sentinel/state/token":   "hunter2\n",
	".git/config":             "url = https://hunter2@example.com\n",
	"image.png":               "\x89PNG\x00\x00hunter2",
}

func TestCodingRecipe(t *testing.T) {
	dir := write(t, project)
	got := build(t, all(fakeData{changes: []rag.Change{{"M", "src/price.go"}, {"??", "conf/.env"}}}), rag.Request{Workspace: dir})
	want := `# tree
.gitignore
README.md
conf/
  notes
image.png
src/
  cart.go
  deep/
    er/
      x.txt
  keep.log
  price.go

# git
branch main
upstream origin/main, 2 ahead, 0 behind
changed since the last commit:
  M  src/price.go
last commits:
  0123456789 2026-03-04 ann: first

# files
--- src/price.go
package src

// Price adds the tax.
func Price() {}
--- README.md
# Project
It sells tea.

# failures
2026-03-04T05:06:07Z build step 1#2.then.0: timeout: took too long
`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Error(diff)
	}
	if got.Recipe != "coding" || got.Bytes != len(got.Text) || got.Truncated || len(got.Sources) != 4 || got.Omitted != nil {
		t.Errorf("recipe %q, %d bytes, truncated %t, %d sources, omitted %v", got.Recipe, got.Bytes, got.Truncated, len(got.Sources), got.Omitted)
	}
}

// TestEmptySources builds a context without data and in an empty folder, which is
// empty and not an error.
func TestEmptySources(t *testing.T) {
	got := build(t, rag.Options{}, rag.Request{Workspace: t.TempDir(), Recipe: "coding"})
	want := []rag.Omission{{"tree", "empty"}, {"git", "not available in this host"}, {"files", "empty"}, {"failures", "not available in this host"}}
	if diff := cmp.Diff(want, got.Omitted); diff != "" || got.Text != "" || got.Sources == nil {
		t.Errorf("%s%+v", diff, got)
	}
	got = build(t, all(fakeData{err: errors.New("git: not a repository\nsecond line")}), rag.Request{Workspace: t.TempDir(), Sources: []string{"git", "chat"}})
	want = []rag.Omission{{"git", "git: not a repository"}, {"chat", "git: not a repository"}}
	if diff := cmp.Diff(want, got.Omitted); diff != "" {
		t.Error(diff)
	}
}

func TestSources(t *testing.T) {
	dir := write(t, map[string]string{
		"a.txt": "A\n", "b/c.txt": "C\n", "b/d/e.txt": "E\n", "b/x.md": "X\n", ".gitignore": "ignored.txt\n", "ignored.txt": "I\n",
		"vendor/v.txt": "V\n", ".env": "hunter2\n",
	})
	tests := []struct {
		req  rag.Request
		want string
	}{
		{rag.Request{Sources: []string{"chat"}}, "# chat\n2026-03-04T05:06:07Z ann: in general\n  second line\n2026-03-04T05:06:07Z bob: yes\n"},
		{rag.Request{Sources: []string{"chat:dev"}, Room: "x"}, "# chat:dev\n2026-03-04T05:06:07Z ann: in dev\n  second line\n2026-03-04T05:06:07Z bob: yes\n"},
		{rag.Request{Sources: []string{"activity", "activity"}}, "# activity\n2026-03-04T05:06:07Z run started\n"},
		{rag.Request{Recipe: "own"}, "# file:a.txt\n--- a.txt\nA\n\n# failures\n2026-03-04T05:06:07Z build step 1#2.then.0: timeout: took too long\n"},
		{rag.Request{Sources: []string{"file:./a.txt"}}, "# file:./a.txt\n--- a.txt\nA\n"},
		{rag.Request{Sources: []string{"file:b"}}, "# file:b\n--- b/c.txt\nC\n--- b/d/e.txt\nE\n--- b/x.md\nX\n"},
		{rag.Request{Sources: []string{"file:**/*.txt"}}, "# file:**/*.txt\n--- a.txt\nA\n--- b/c.txt\nC\n--- b/d/e.txt\nE\n"},
		{rag.Request{Sources: []string{"file:b/*"}}, "# file:b/*\n--- b/c.txt\nC\n--- b/x.md\nX\n"},
		{rag.Request{Sources: []string{"file:ignored.txt"}}, "# file:ignored.txt\n--- ignored.txt\nI\n"}, // a name includes ignored files
		{rag.Request{Sources: []string{"file:vendor/v.txt"}}, "# file:vendor/v.txt\n--- vendor/v.txt\nV\n"},
		{rag.Request{Sources: []string{"file:.env", "file:.e*", "file:none.txt"}}, ""},
	}
	for _, tt := range tests {
		tt.req.Workspace = dir
		if diff := cmp.Diff(tt.want, build(t, all(fakeData{}), tt.req).Text); diff != "" {
			t.Errorf("%v%v: %s", tt.req.Recipe, tt.req.Sources, diff)
		}
	}
}

func TestRelevance(t *testing.T) {
	filler := strings.Repeat("// nothing of interest\n", 400)
	dir := write(t, map[string]string{
		"web/login.ts":     "export function login() {}\n",
		"web/session.ts":   filler + "// here the password is checked\nfunction check() {}\n" + filler,
		"web/other.ts":     "other\n",
		"api/handler.go":   strings.Repeat("// line\n", 2000),
		"api/util/text.go": "package util\n",
		"docs/a.md":        "words\n",
	})
	order := func(req rag.Request) (names []string, text string) {
		req.Workspace, req.Sources = dir, []string{"files"}
		text = build(t, all(fakeData{}), req).Text
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "--- "); ok {
				names = append(names, strings.Fields(rest)[0])
			}
		}
		return names, text
	}
	names, text := order(rag.Request{Query: "Where does login check the password?"})
	if len(names) < 2 || !cmp.Equal(names[:2], []string{"web/session.ts", "web/login.ts"}) && !cmp.Equal(names[:2], []string{"web/login.ts", "web/session.ts"}) {
		t.Errorf("by query: %v", names)
	}
	if !strings.Contains(text, "here the password is checked") {
		t.Error("the excerpt does not contain the line with the words")
	}
	// A file that a compiler names comes first, at the line that it names.
	output := `{"lines":["` + strings.ReplaceAll(dir, `\`, "/") + `/api/handler.go:1500:3: undefined: x","util/text.go(1,1): oops"]}`
	names, text = order(rag.Request{Variables: map[string]json.RawMessage{
		"buildOutput": json.RawMessage(output), "query": json.RawMessage(`"login"`), "ragContext": json.RawMessage(`{"text":"docs/a.md"}`),
	}})
	if diff := cmp.Diff([]string{"api/handler.go", "api/util/text.go", "web/login.ts"}, names); diff != "" {
		t.Errorf("by mention: %s", diff)
	}
	var from, to int
	if _, err := fmt.Sscanf(strings.SplitN(text, "\n", 3)[1], "--- api/handler.go (lines %d to %d of 2000)", &from, &to); err != nil || from > 1500 || to < 1500 {
		t.Errorf("lines %d to %d, %v", from, to, err)
	}
	names, _ = order(rag.Request{Query: "login", Paths: []string{"docs"}})
	if len(names) != 2 || names[0] != "docs/a.md" {
		t.Errorf("by path: %v", names)
	}
}

func TestSecretsAreLeftOut(t *testing.T) {
	dir := write(t, project)
	sources := []string{"tree", "files", "file:**", "file:**/*", "file:.env", "file:.ENV", "file:conf", "file:conf/notes", "file:conf/server.pem", "file:.git/config", "file:.sentinel/state/token", "file:image.png"}
	got := build(t, rag.Options{}, rag.Request{Workspace: dir, Sources: sources, Query: "hunter2 token", Paths: []string{"**"}, MaxBytes: 256 << 10})
	for _, bad := range []string{"hunter2", ".env", "id_rsa", "server.pem"} {
		if i := strings.Index(strings.ReplaceAll(got.Text, "# file:", ""), bad); i >= 0 {
			t.Errorf("%q is in the context:\n%s", bad, got.Text)
		}
	}
	for _, s := range got.Sources {
		if strings.Contains(s.Text, "hunter2") {
			t.Errorf("source %q holds a secret", s.Name)
		}
	}
}

// TestLinks checks that links are not followed and nothing outside is read.
func TestLinks(t *testing.T) {
	outside := write(t, map[string]string{"secret.txt": "hunter2\n", "d/x.txt": "hunter2\n"})
	dir := write(t, map[string]string{"a.txt": "A\n", ".env": "hunter2\n"})
	for name, target := range map[string]string{
		"out.txt": filepath.Join(outside, "secret.txt"), "outdir": outside, "up": "..", "innocent.md": ".env", "loop": "loop",
		".gitignore": filepath.Join(outside, "secret.txt"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skipf("this system has no links: %v", err)
		}
	}
	sources := []string{"tree", "files", "file:out.txt", "file:outdir/d/x.txt", "file:outdir", "file:outdir/**", "file:innocent.md", "file:loop", "file:up/**", "file:**"}
	got := build(t, rag.Options{}, rag.Request{Workspace: dir, Sources: sources, Paths: []string{"**"}, Query: "hunter2"})
	if strings.Contains(got.Text, "hunter2") {
		t.Errorf("a link was followed:\n%s", got.Text)
	}
	if want := "# tree\na.txt\n\n# files\n--- a.txt\nA\n\n# file:**\n--- a.txt\nA\n"; got.Text != want {
		t.Errorf("got:\n%s", got.Text)
	}
	if text := search(t, dir, `{"query":"hunter2"}`); strings.Contains(text, "results\":[{") {
		t.Errorf("search found %s", text)
	}
}

// TestDeterminism checks that equal state gives equal text, independent of the order
// in which files are created.
func TestDeterminism(t *testing.T) {
	req := rag.Request{Query: "cart price", Variables: map[string]json.RawMessage{
		"a": json.RawMessage(`"cart.go:3"`), "b": json.RawMessage(`"src/price.go"`), "c": json.RawMessage(`{"x":"x.txt","y":["README.md"]}`),
	}}
	var first string
	for i := range 5 {
		req.Workspace = write(t, project) // the order of a map is random
		text := build(t, all(fakeData{}), req).Text
		if i == 0 {
			first = text
		}
		if diff := cmp.Diff(first, text); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestLimits(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("pkg%02d/file%03d.txt", i%20, i)] = strings.Repeat(fmt.Sprintf("wörd %d\n", i), 400)
	}
	files["long.txt"] = strings.Repeat("wörd", 5000)
	dir := write(t, files)
	for _, size := range []int{0, 1 << 10, 2000, 5000, 64 << 10, 256 << 10} {
		limit := size
		if size == 0 {
			limit = 48 << 10
		}
		got := build(t, all(fakeData{}), rag.Request{
			Workspace: dir, MaxBytes: size, Query: "wörd", Sources: []string{"tree", "files", "file:**", "file:long.txt", "git", "chat", "failures", "activity"},
		})
		if got.Bytes > limit || got.Bytes != len(got.Text) {
			t.Errorf("limit %d: %d bytes", limit, got.Bytes)
		}
		if !got.Truncated {
			t.Errorf("limit %d: not truncated with %d bytes", limit, got.Bytes)
		}
		for _, s := range got.Sources {
			if len(s.Text) > max(16<<10, limit/3) {
				t.Errorf("limit %d: source %q has %d bytes", limit, s.Name, len(s.Text))
			}
			if strings.ContainsRune(s.Text, '\uFFFD') {
				t.Errorf("limit %d: source %q was cut inside a character", limit, s.Name)
			}
		}
	}
}

func TestTreeClosesFolders(t *testing.T) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("many/f%03d", i)] = ""
		files[fmt.Sprintf("top%02d/a/b/c%d/leaf-with-a-long-name-%d", i%30, i, i)] = ""
	}
	got := build(t, rag.Options{}, rag.Request{Workspace: write(t, files), Sources: []string{"tree"}, MaxBytes: 1024})
	if !got.Truncated || !strings.Contains(got.Text, "top00/ (4 files)\n") || !strings.Contains(got.Text, "many/ (100 files)\n") {
		t.Errorf("got:\n%s", got.Text)
	}
	got = build(t, rag.Options{}, rag.Request{Workspace: write(t, files), Sources: []string{"tree"}})
	if !strings.Contains(got.Text, "  f059\n  ... and more\ntop00/\n") {
		t.Errorf("got:\n%s", got.Text)
	}
}

func TestInvalidRequests(t *testing.T) {
	dir := t.TempDir()
	many := strings.Split(strings.Repeat("file:a ", 33), " ")[:33]
	for i := range many {
		many[i] += fmt.Sprint(i)
	}
	tests := []struct {
		req   rag.Request
		code  abi.Code
		field string
	}{
		{rag.Request{Recipe: "codign"}, abi.NotFound, "recipe"},
		{rag.Request{Sources: []string{"tre"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: []string{"tree:x"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: []string{"chat:"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: []string{"file:"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: []string{"file:../x"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: []string{"file:/etc/passwd"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: []string{"file:a/../../x"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: []string{"file:[a"}}, abi.BadFields, "sources"},
		{rag.Request{Sources: many}, abi.Limit, "sources"},
		{rag.Request{Paths: []string{"../x"}}, abi.BadFields, "paths"},
		{rag.Request{MaxBytes: 10}, abi.BadFields, "maxBytes"},
		{rag.Request{MaxBytes: 1 << 20}, abi.BadFields, "maxBytes"},
	}
	for _, tt := range tests {
		tt.req.Workspace = dir
		_, err := rag.New(all(fakeData{})).Build(t.Context(), tt.req)
		if e := abi.As(err); e == nil || e.Code != tt.code || e.Field != tt.field {
			t.Errorf("%+v: %v", tt.req, err)
		}
	}
	for _, workspace := range []string{"", "relative", filepath.Join(dir, "none")} {
		if _, err := rag.New(rag.Options{}).Build(t.Context(), rag.Request{Workspace: workspace}); err == nil {
			t.Errorf("workspace %q was opened", workspace)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rag.New(rag.Options{}).Build(ctx, rag.Request{Workspace: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func search(t testing.TB, dir, params string) string {
	t.Helper()
	r, err := command.NewRegistry(rag.Commands(rag.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Call(t.Context(), &command.Call{Command: "rag/search", Params: json.RawMessage(params), Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSearch(t *testing.T) {
	dir := write(t, project)
	var out struct {
		Results []struct {
			Path, Text string
			Line       int
		}
		Total int
		Text  string
	}
	if err := json.Unmarshal([]byte(search(t, dir, `{"query":"addToCart tax"}`)), &out); err != nil {
		t.Fatal(err)
	}
	if out.Total != 2 || out.Results[0].Path != "src/cart.go" || out.Results[1].Path != "src/price.go" || out.Results[0].Line != 1 {
		t.Errorf("found %+v", out)
	}
	if text := search(t, dir, `{"query":"tax","paths":["conf","src/*.txt"]}`); !strings.Contains(text, `"results":[],"total":0`) {
		t.Errorf("within paths: %s", text)
	}
	r, _ := command.NewRegistry(rag.Commands(rag.Options{})...)
	if got, err := r.Call(t.Context(), &command.Call{Command: "rag/search", Params: json.RawMessage(`{"query":"the of"}`), Workspace: dir}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("no words: %s, %v", got, err)
	}
	text, err := r.Call(t.Context(), &command.Call{Command: "rag/build", Params: json.RawMessage(`{"sources":["file:README.md"]}`), Workspace: dir})
	if want := `{"sources":[{"name":"file:README.md","text":"--- README.md\n# Project\nIt sells tea.\n"}],"text":"# file:README.md\n--- README.md\n# Project\nIt sells tea.\n","bytes":55,"truncated":false}`; err != nil || string(text) != want {
		t.Errorf("build: %s, %v", text, err)
	}
}
