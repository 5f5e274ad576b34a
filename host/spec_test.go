package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/internal/needs"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// example reads one of the specification's four examples, unmodified.
func example(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "sentinels", "testdata", "spec", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "config", "user.name", "t")
	git(t, dir, "config", "user.email", "t@example.com")
	write(t, dir, files)
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "start")
	return dir
}

func runExample(t *testing.T, name, ws string, opt runtime.StartOptions) (*host.Host, runtime.Result) {
	t.Helper()
	h := open(t, host.Options{Workspace: ws, State: filepath.Join(t.TempDir(), "state")})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	def, problems := h.Runtime().Decode(example(t, name), name)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	opt.Workspace = ws
	id, err := h.Runtime().Start(ctx, def, opt)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Runtime().Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return h, res
}

// TestExample1BuildFixLoop shows the whole loop: write, test, fix and commit, end to end. The
// real npm is used where there is one.
func TestExample1BuildFixLoop(t *testing.T) {
	if err := needs.Works(t.TempDir(), nil, "npm", "--version"); err != nil {
		bin := t.TempDir()
		write(t, bin, map[string]string{"npm": "#!/bin/sh\nexec sh ./build.sh\n"})
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		t.Logf("a script stands in for npm: %v", err)
	}
	ws := repository(t, map[string]string{
		"package.json": `{"name":"x","version":"1.0.0","scripts":{"build":"sh ./build.sh"}}`,
		"build.sh": "#!/bin/sh\nif grep -q 'numbr' main.ts; then\n  echo \"main.ts(1,8): error TS2304: Cannot find name 'numbr'.\"\n  exit 2\nfi\n" +
			"echo Successfully compiled\n",
		"main.ts": "let a: numbr = 1\n",
	})
	server := newModelServer(t, func(r chatRequest) answer {
		switch r.answers() {
		case 0:
			if !strings.Contains(r.text("user"), "error TS2304") {
				t.Errorf("the prompt does not hold the compiler's error: %q", r.text("user"))
			}
			return answer{tool: "code_read", args: map[string]any{"path": "main.ts"}}
		case 1:
			return answer{tool: "code_edit", args: map[string]any{"path": "main.ts", "old": "numbr", "new": "number"}}
		}
		return answer{text: "It was a typing mistake."}
	})
	_, res := runExample(t, "1-build-fix-loop.json", ws, runtime.StartOptions{})
	if res.Status != sentinels.StatusCompleted || res.Iterations != 2 {
		t.Fatalf("%s after %d iterations: %v", res.Status, res.Iterations, res.Error)
	}
	if got := git(t, ws, "log", "-1", "--format=%s"); got != "Build passes" {
		t.Errorf("newest commit %q", got)
	}
	if b, _ := os.ReadFile(filepath.Join(ws, "main.ts")); string(b) != "let a: number = 1\n" {
		t.Errorf("main.ts = %q", b)
	}
	if n := server.turns(); n != 3 {
		t.Errorf("%d turns, want 3", n)
	}
	if res.Usage.Calls != 3 || res.Usage.InputTokens != 300 {
		t.Errorf("usage %+v", res.Usage)
	}
}

func TestExample2CodeReview(t *testing.T) {
	ws := repository(t, map[string]string{"a.txt": "one\n"})
	write(t, ws, map[string]string{"a.txt": "two\n"})
	server := newModelServer(t, func(r chatRequest) answer {
		if p := r.text("user"); !strings.Contains(p, "-one") || !strings.Contains(p, "+two") {
			t.Errorf("the prompt does not hold the diff: %q", p)
		}
		return answer{text: "Looks good."}
	})
	h, res := runExample(t, "2-code-review.json", ws, runtime.StartOptions{Event: &sentinels.Event{Name: "git:push"}})
	if res.Status != sentinels.StatusCompleted || server.turns() != 1 {
		t.Fatalf("%s: %v, %d turns", res.Status, res.Error, server.turns())
	}
	out, err := h.Call(t.Context(), "collaboration/chat/history", json.RawMessage(`{"room":"general"}`))
	if err != nil || !strings.Contains(string(out), "Looks good.") {
		t.Errorf("chat history %s, %v", out, err)
	}
}

func TestExample3ExploreCodebase(t *testing.T) {
	ws := repository(t, map[string]string{"auth/login.go": "package auth\n\n// Login checks a password.\nfunc Login() {}\n"})
	server := newModelServer(t, func(r chatRequest) answer {
		switch {
		case r.answers() == 0 && strings.Contains(r.text("user"), "Continue searching"):
			return answer{text: "```json\n{\"complete\": true, \"files\": [\"auth/login.go\"]}\n```"}
		case r.answers() == 0:
			return answer{tool: "code_search", args: map[string]any{"pattern": "Login"}}
		}
		if !strings.Contains(r.text("tool"), "auth/login.go") {
			t.Errorf("tool result %q does not name the file", r.text("tool"))
		}
		return answer{text: `{"complete": false, "note": "one more look"}`}
	})
	_, res := runExample(t, "3-explore-codebase.json", ws, runtime.StartOptions{Inputs: map[string]json.RawMessage{"query": json.RawMessage(`"where is login"`)}})
	if res.Status != sentinels.StatusCompleted || res.Iterations != 1 {
		t.Fatalf("%s after %d iterations: %v", res.Status, res.Iterations, res.Error)
	}
	if p := server.asked[0].text("user"); !strings.Contains(p, "where is login") {
		t.Errorf("the query did not reach the prompt: %q", p)
	}
	var findings struct {
		Complete bool
		Files    []string
	}
	if err := json.Unmarshal(res.Variables["findings"], &findings); err != nil || !findings.Complete || len(findings.Files) != 1 {
		t.Errorf("findings = %s", res.Variables["findings"])
	}
}

const goProject = "module example.com/x\n\ngo 1.22\n"

func TestExample4ShipIt(t *testing.T) {
	for _, c := range []struct {
		name, want, event string
		pushed            bool
	}{
		{"green", "1", "sentinel:deployed", true},
		{"red", "2", "sentinel:test-failure", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			remote := t.TempDir()
			git(t, remote, "init", "-q", "--bare", "-b", "main")
			ws := repository(t, map[string]string{
				"go.mod":    goProject,
				"x.go":      "package x\n\nfunc One() int { return 1 }\n",
				"x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != " + c.want + " {\n\t\tt.Fatal(One())\n\t}\n}\n",
			})
			git(t, ws, "remote", "add", "origin", remote)
			git(t, ws, "push", "-q", "-u", "origin", "main")
			write(t, ws, map[string]string{"NOTES": "more\n"})
			git(t, ws, "add", ".")
			git(t, ws, "commit", "-q", "-m", "more")
			h, res := runExample(t, "4-ship-it.json", ws, runtime.StartOptions{})
			if res.Status != sentinels.StatusCompleted {
				t.Fatalf("%s: %v", res.Status, res.Error)
			}
			pushed := git(t, remote, "log", "-1", "--format=%s") == "more"
			if pushed != c.pushed {
				t.Errorf("pushed %v, want %v; testResult = %s", pushed, c.pushed, res.Variables["testResult"])
			}
			events, err := h.Runtime().Events("sentinel:*", 10)
			if err != nil || len(events) != 1 || events[0].Name != c.event {
				t.Errorf("events %+v, %v; want %s", events, err, c.event)
			}
		})
	}
}

// TestGlobsEverywhere compares patterns in all that finds files: a glob means the same everywhere, except that in searches
// one without a slash applies in every folder.
func TestGlobsEverywhere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "word", "in/b.md": "word", "in/d/c.md": "word", "x/in/e.md": "word"})
	h := open(t, host.Options{Workspace: dir})
	watcher := files.NewWatcher(files.Options{Root: dir})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	searches := map[string]func(pattern string) ([]string, error){
		"fs/list": func(pattern string) ([]string, error) {
			var out struct{ Files []string }
			err := call(t, h, "fs/list", map[string]any{"pattern": pattern}, &out)
			return out.Files, err
		},
		"code/search": func(pattern string) (found []string, err error) {
			var out struct{ Matches []struct{ Path string } }
			err = call(t, h, "code/search", map[string]any{"pattern": "word", "glob": pattern}, &out)
			for _, m := range out.Matches {
				found = append(found, m.Path)
			}
			return found, err
		},
		"a loop": func(pattern string) ([]string, error) {
			var out struct {
				Error     *struct{ Message string }
				Variables struct{ Seen []string }
			}
			err := call(t, h, "sentinel/run", map[string]any{"workspace": dir, "definition": map[string]any{
				"name": "globs", "variables": map[string]any{"seen": []string{}}, "steps": []any{map[string]any{
					"type": "loop", "each": map[string]any{"files": pattern},
					"steps": []any{map[string]any{"type": "set", "values": map[string]any{"seen": map[string]any{"expr": "[...$seen, $item]"}}}},
				}},
			}}, &out)
			if out.Error != nil {
				err = errors.New(out.Error.Message)
			}
			return out.Variables.Seen, err
		},
	}
	paths := map[string]func(pattern string) ([]string, error){
		"a file trigger": func(pattern string) (found []string, err error) {
			sub, err := watcher.Subscribe(ctx, files.Query{Patterns: []string{pattern}})
			if err != nil {
				return nil, err
			}
			defer sub.Close()
			list, _ := sub.Files()
			for _, f := range list {
				found = append(found, f.Path)
			}
			return found, nil
		},
		"rag/search": func(pattern string) (found []string, err error) {
			var out struct{ Results []struct{ Path string } }
			err = call(t, h, "rag/search", map[string]any{"query": "word", "paths": []string{pattern}}, &out)
			for _, r := range out.Results {
				found = append(found, r.Path)
			}
			return found, err
		},
	}
	for _, c := range []struct{ pattern, path, search string }{
		{"*.md", "a.md", "a.md in/b.md in/d/c.md x/in/e.md"},
		{"./*.md", "a.md", "a.md"},
		{"in", "in/b.md in/d/c.md", "in/b.md in/d/c.md x/in/e.md"},
		{"./in", "in/b.md in/d/c.md", "in/b.md in/d/c.md"},
		{"in/*.md", "in/b.md", "in/b.md"},
		{"**/*.md", "a.md in/b.md in/d/c.md x/in/e.md", "a.md in/b.md in/d/c.md x/in/e.md"},
		{"/*.md", `absolute pattern "/*.md": want one relative to the workspace, such as "./*.md"`, `absolute pattern "/*.md": want one relative to the workspace, such as "./*.md"`},
		{"in/", `pattern "in/": write "in"`, `pattern "in/": write "in"`},
	} {
		for want, places := range map[string]map[string]func(string) ([]string, error){"path " + c.path: paths, "search " + c.search: searches} {
			_, want, _ = strings.Cut(want, " ")
			for name, find := range places {
				found, err := find(c.pattern)
				slices.Sort(found)
				got := strings.Join(found, " ")
				if err != nil {
					got = err.Error()
				}
				if got != want && (err == nil || !strings.Contains(got, want)) {
					t.Errorf("%s: %q finds %s, want %s", name, c.pattern, got, want)
				}
			}
		}
	}
}
