package git_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/git"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// bench is a repository with the commands over it.
type bench struct {
	t   *testing.T
	dir string
	reg *command.Registry
}

type params map[string]any

func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git on this machine")
	}
	// The person's own configuration must not decide what a test sees.
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("HOME", t.TempDir())
	reg, err := command.NewRegistry(git.Commands(git.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, t.TempDir(), reg}
}

// raw runs the machine's own git, with nothing in its way.
func (b *bench) raw(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) put(name, text string) {
	b.t.Helper()
	full := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) try(p params) (git.Result, error) {
	b.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := b.reg.Call(b.t.Context(), &command.Call{Command: "code/git", Params: text, By: command.ByStep, Workspace: b.dir})
	var r git.Result
	if err != nil {
		return r, err
	}
	if len(answer) > 256<<10 {
		b.t.Errorf("an answer of %d bytes", len(answer))
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		b.t.Fatal(err)
	}
	return r, nil
}

func (b *bench) do(p params) git.Result {
	b.t.Helper()
	r, err := b.try(p)
	if err != nil {
		b.t.Fatalf("%v: %v", p, err)
	}
	return r
}

// repo makes a repository with one commit.
func (b *bench) repo() {
	b.t.Helper()
	b.raw(b.dir, "init", "-q")
	b.put("a.txt", "one\ntwo\n")
	b.raw(b.dir, "add", ".")
	b.raw(b.dir, "commit", "-q", "-m", "first")
}

func TestLifeOfARepository(t *testing.T) {
	b := newBench(t)
	if _, err := b.try(params{"operation": "status"}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("before init: %v", err)
	}
	if r := b.do(params{"operation": "init"}); r.Branch != "main" {
		t.Errorf("init: %+v", r)
	}
	if entries, err := os.ReadDir(filepath.Join(b.dir, ".git", "hooks")); err == nil && len(entries) > 0 {
		t.Errorf("init made hooks: %v", entries)
	}
	if r := b.do(params{"operation": "diff"}); r.Diff != "" {
		t.Errorf("diff of nothing: %+v", r)
	}
	b.put("a.txt", "one\n")
	b.put("sub/b ü.txt", "x\n")
	r := b.do(params{"operation": "status"})
	if diff := cmp.Diff([]git.File{{Path: "a.txt", Changed: "?"}, {Path: "sub/", Changed: "?"}}, r.Files); diff != "" || *r.Clean || r.Branch != "main" {
		t.Errorf("status: %+v %s", r, diff)
	}
	if r := b.do(params{"operation": "add", "paths": []string{"."}}); len(r.Files) != 2 {
		t.Errorf("add: %+v", r)
	}
	r = b.do(params{"operation": "commit", "message": "First: \"quoted\"\n\nbody -m --amend\n"})
	if !*r.Committed || len(r.Hash) != 40 || r.Author != "sentinel <sentinel@localhost>" {
		t.Errorf("commit: %+v", r)
	}
	if got := b.raw(b.dir, "log", "-1", "--format=%B"); got != "First: \"quoted\"\n\nbody -m --amend" {
		t.Errorf("message is %q", got)
	}
	again := b.do(params{"operation": "commit", "message": "Again"})
	if *again.Committed || !again.Success || again.Hash != r.Hash || again.Output != "nothing to commit" {
		t.Errorf("nothing to commit: %+v", again)
	}
	b.put("a.txt", "changed\n")
	if r := b.do(params{"operation": "diff"}); !strings.Contains(r.Diff, "+changed") || r.Files[0].Added != 1 || r.Files[0].Removed != 1 {
		t.Errorf("diff: %+v", r)
	}
	if r := b.do(params{"operation": "diff", "staged": true}); r.Diff != "" {
		t.Errorf("nothing is staged: %+v", r)
	}
	if r := b.do(params{"operation": "commit", "message": "All", "all": true}); !*r.Committed {
		t.Errorf("commit all: %+v", r)
	}
	if r := b.do(params{"operation": "log"}); len(r.Commits) != 2 || r.Commits[0].Subject != "All" {
		t.Errorf("log: %+v", r)
	}
	if r := b.do(params{"operation": "log", "paths": []string{"sub"}}); len(r.Commits) != 1 {
		t.Errorf("log of a path: %+v", r)
	}
	if r := b.do(params{"operation": "log", "count": 1, "format": "%an: %s"}); len(r.Commits) != 1 || r.Output != "sentinel: All\n" {
		t.Errorf("log with count and format: %+v", r)
	}
	if r := b.do(params{"operation": "log", "format": "oneline"}); len(r.Commits) != 2 || r.Output != r.Commits[0].Hash+" All\n"+r.Commits[1].Hash+" First: \"quoted\"\n" {
		t.Errorf("log in one line: %+v", r)
	}
	for _, format := range []string{"%G?", "%<(9999999)%s", "%(trailers)", "100%", "pretty", "%x00", "%"} {
		if _, err := b.try(params{"operation": "log", "format": format}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("log with format %q: %v", format, err)
		}
	}
	if r := b.do(params{"operation": "show", "ref": "HEAD~1"}); !strings.Contains(r.Output, "First") || !strings.Contains(r.Diff, "+one") {
		t.Errorf("show: %+v", r)
	}
	if r := b.do(params{"operation": "checkout", "branch": "topic/x", "create": true}); r.Branch != "topic/x" {
		t.Errorf("checkout: %+v", r)
	}
	b.put("a.txt", "to be taken back\n")
	b.do(params{"operation": "checkout", "paths": []string{"a.txt"}})
	if data, err := os.ReadFile(filepath.Join(b.dir, "a.txt")); err != nil || string(data) != "changed\n" {
		t.Errorf("a.txt is %q, %v", data, err)
	}
	b.do(params{"operation": "branch", "branch": "other", "base": "main"})
	if r := b.do(params{"operation": "branch"}); len(r.Branches) != 3 || r.Branch != "topic/x" {
		t.Errorf("branch: %+v", r)
	}
}

func TestDiffAfterACommitShowsIt(t *testing.T) {
	b := newBench(t)
	b.repo()
	r := b.do(params{"operation": "diff"})
	if !strings.Contains(r.Diff, "+one") || r.Of != "the last commit and the one before" {
		t.Errorf("first commit: %+v", r)
	}
	b.put("a.txt", "one\n")
	b.raw(b.dir, "commit", "-q", "-a", "-m", "second")
	answer, err := b.reg.Call(t.Context(), &command.Call{Command: "code/diff", By: command.ByModel, Workspace: b.dir})
	if err != nil || !strings.Contains(string(answer), `-two`) {
		t.Errorf("got %s, %v", answer, err)
	}
	if r := b.do(params{"operation": "diff", "base": "HEAD"}); r.Diff != "" {
		t.Errorf("with a base it shows just that: %+v", r)
	}
}

func TestDiffIsCutToFit(t *testing.T) {
	b := newBench(t)
	b.repo()
	b.put("big.txt", strings.Repeat("<\"\\\x01&>\n", 100_000))
	b.raw(b.dir, "add", ".")
	if r := b.do(params{"operation": "diff"}); !r.Truncated || !strings.HasSuffix(r.Diff, "\n") {
		t.Errorf("truncated %v, %d bytes", r.Truncated, len(r.Diff))
	}
}

func TestPushAndPull(t *testing.T) {
	b := newBench(t)
	b.repo()
	if _, err := b.try(params{"operation": "push"}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("without a remote: %v", err)
	}
	bare := filepath.Join(t.TempDir(), "it's bare.git")
	b.raw(b.dir, "init", "-q", "--bare", bare)
	b.raw(b.dir, "remote", "add", "origin", bare)
	r := b.do(params{"operation": "push"})
	if !r.Success || !*r.Pushed || r.Remote != "origin" || r.Branch != "main" || b.raw(bare, "rev-parse", "main") != r.Hash {
		t.Errorf("push: %+v", r)
	}
	if r := b.do(params{"operation": "push"}); !r.Success || *r.Pushed {
		t.Errorf("push again: %+v", r)
	}
	if r := b.do(params{"operation": "status"}); r.Upstream != "origin/main" || r.Ahead != 0 {
		t.Errorf("status: %+v", r)
	}
	// Another clone pushes.
	other := filepath.Join(t.TempDir(), "other")
	b.raw(b.dir, "clone", "-q", bare, other)
	if err := os.WriteFile(filepath.Join(other, "new.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.raw(other, "add", ".")
	b.raw(other, "commit", "-q", "-m", "theirs")
	b.raw(other, "push", "-q", "origin", "main")
	b.put("mine.txt", "x")
	b.do(params{"operation": "add", "paths": []string{"mine.txt"}})
	b.do(params{"operation": "commit", "message": "mine"})
	if r := b.do(params{"operation": "push"}); r.Success || *r.Pushed || r.ExitCode != 1 || !strings.Contains(r.Output, "rejected") {
		t.Errorf("a refused push is a result: %+v", r)
	}
	if r := b.do(params{"operation": "pull"}); r.Success || r.ExitCode == 0 {
		t.Errorf("a pull that is no fast-forward is a result: %+v", r)
	}
	b.raw(b.dir, "reset", "-q", "--hard", "HEAD~1")
	if r := b.do(params{"operation": "pull"}); !r.Success || r.Hash != b.raw(other, "rev-parse", "HEAD") {
		t.Errorf("pull: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "new.txt")); err != nil {
		t.Error(err)
	}
	if r := b.do(params{"operation": "fetch"}); r.Hash == "" {
		t.Errorf("fetch: %+v", r)
	}
}

// TestFailedPushNamesItsRemote: the error of a push names the remote, or says that none is set, and the hint
// says what to do.
func TestFailedPushNamesItsRemote(t *testing.T) {
	b := newBench(t)
	b.repo()
	check := func(p params, message, hint string) {
		t.Helper()
		_, err := b.try(p)
		if e := abi.As(err); e == nil || !strings.Contains(e.Message, message) || !strings.Contains(e.Hint, hint) {
			t.Errorf("%v: %+v, want %q and %q", p, e, message, hint)
		}
	}
	check(params{"operation": "push"}, "git push: the repository has no remote", "git remote add origin URL")
	check(params{"operation": "push", "remote": "up"}, `git push: remote "up" is not set`, "git remote add up URL")
	b.raw(b.dir, "remote", "add", "origin", filepath.Join(t.TempDir(), "gone.git"))
	check(params{"operation": "push"}, `git push, remote "origin": `, "git remote get-url origin shows where it is")
	check(params{"operation": "fetch"}, `git fetch, remote "origin": `, "git remote get-url origin")
	check(params{"operation": "push", "remote": "up"}, `git push: remote "up" is not set`, "name one of origin")
	b.raw(b.dir, "remote", "rename", "origin", "a")
	b.raw(b.dir, "remote", "add", "b", "https://example.org/b.git")
	check(params{"operation": "push"}, "none of several is called origin", "name one of a, b")
}

// TestPathsAreNames: a path is the name of one file, also where git would take it
// for a pattern.
func TestPathsAreNames(t *testing.T) {
	b := newBench(t)
	b.repo()
	for _, text := range []string{"committed\n", "changed\n"} {
		for _, name := range []string{"a[bc].txt", "ab.txt", "st*r.txt", "star.txt"} {
			b.put(name, text)
		}
		if text == "committed\n" {
			b.raw(b.dir, "add", ".")
			b.raw(b.dir, "commit", "-q", "-m", "four files")
		}
	}
	b.do(params{"operation": "add", "paths": []string{"a[bc].txt", "st*r.txt"}})
	if got := b.raw(b.dir, "diff", "--cached", "--name-only"); got != "a[bc].txt\nst*r.txt" {
		t.Errorf("staged %q", got)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	b := newBench(t)
	b.repo()
	evil := []string{
		"--upload-pack=touch canary", "-x", "--output=canary", "$(touch canary)", "a b", "main..HEAD", ":/first", "HEAD:a.txt", "..", "a\nb", "a\x00b", "@{-1", "a:b", "ext::sh -c id", "*", "a?b", "a[b", `a\b`,
	}
	for _, value := range evil {
		for _, p := range []params{
			{"operation": "diff", "base": value}, {"operation": "log", "base": value}, {"operation": "show", "ref": value}, {"operation": "checkout", "branch": value},
			{"operation": "checkout", "branch": value, "create": true}, {"operation": "branch", "branch": value}, {"operation": "branch", "branch": "ok", "base": value},
			{"operation": "push", "remote": value}, {"operation": "push", "branch": value}, {"operation": "pull", "remote": value}, {"operation": "init", "branch": value},
		} {
			if r, err := b.try(p); err == nil || abi.CodeOf(err) != abi.BadFields && abi.CodeOf(err) != abi.NotFound {
				t.Errorf("%q: %+v, %v", p, r, err)
			}
		}
	}
	for _, path := range []string{"../x", "/etc/passwd", ":/", ":(exclude)a", "", "a\x00"} {
		for _, op := range []string{"add", "diff", "log", "checkout", "commit"} {
			_, err := b.try(params{"operation": op, "paths": []string{path}, "message": "m"})
			if c := abi.CodeOf(err); c != abi.BadFields && c != abi.Denied {
				t.Errorf("%s %q: %v", op, path, err)
			}
		}
	}
	for _, url := range []string{"https://evil.example/x.git", "ext::touch canary", "../other.git", "file:///tmp/x", "-o"} {
		if _, err := b.try(params{"operation": "push", "remote": url}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("remote %q: %v", url, err)
		}
	}
	if _, err := b.try(params{"operation": "gc"}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("unknown operation: %v", err)
	}
	if _, err := b.try(params{"operation": "commit"}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("no message: %v", err)
	}
	if entries, _ := filepath.Glob(filepath.Join(b.dir, "canary*")); len(entries) > 0 {
		t.Errorf("made %v", entries)
	}
	b.put("-n", "a file named as an option")
	if r := b.do(params{"operation": "add", "paths": []string{"-n"}}); len(r.Files) != 1 {
		t.Errorf("a file named as an option: %+v", r)
	}
}

func TestWorkTreeMustHoldTheWorkspace(t *testing.T) {
	b := newBench(t)
	b.repo()
	outside := t.TempDir()
	b.raw(b.dir, "config", "core.worktree", outside)
	for _, op := range []string{"status", "add", "checkout", "diff"} {
		if _, err := b.try(params{"operation": op, "paths": []string{"."}}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s with core.worktree: %v", op, err)
		}
	}
	b.raw(b.dir, "config", "--unset", "core.worktree")
	b.put("sub/x.txt", "x")
	whole := b.dir
	b.dir = filepath.Join(whole, "sub")
	if r := b.do(params{"operation": "status"}); len(r.Files) != 1 {
		t.Errorf("status below the top: %+v", r)
	}
	if _, err := b.try(params{"operation": "checkout", "branch": "main"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("checkout below the top: %v", err)
	}
}

// TestModelsDoNotSeeChangesOfSecretFiles shows a model the changes of all files
// but those that hold secrets, whose names it receives.
func TestModelsDoNotSeeChangesOfSecretFiles(t *testing.T) {
	b := newBench(t)
	b.repo()
	odd := "od\xffd.pem"
	for _, name := range []string{".env", "sub/prod.env", "notes.txt", odd} {
		b.put(name, "needle one\n")
	}
	b.raw(b.dir, "add", ".")
	b.raw(b.dir, "commit", "-q", "-m", "second")
	for _, name := range []string{".env", "sub/prod.env", "notes.txt", odd} {
		b.put(name, "needle two\n")
	}
	ask := func(by command.By, name string, p params) git.Result {
		t.Helper()
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := b.reg.Call(t.Context(), &command.Call{Command: name, Params: text, By: by, Workspace: b.dir, Tools: []string{"code/git", "code/diff"}})
		if err != nil {
			t.Fatal(err)
		}
		var r git.Result
		if err := json.Unmarshal(answer, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, tt := range []struct {
		command string
		p       params
	}{
		{"code/diff", params{}}, {"code/diff", params{"base": "HEAD~1"}}, {"code/git", params{"operation": "show"}}, {"code/git", params{"operation": "diff", "paths": []string{"sub", "notes.txt", ".env"}}},
	} {
		all, some := ask(command.ByStep, tt.command, tt.p), ask(command.ByModel, tt.command, tt.p)
		if len(all.Hidden) != 0 || !strings.Contains(all.Diff, "b/sub/prod.env") || !strings.Contains(all.Diff, "b/.env") {
			t.Errorf("%v by a step: hidden %q\n%s", tt, all.Hidden, all.Diff)
		}
		if strings.Count(some.Diff, "diff --git") != 1 || !strings.Contains(some.Diff, "b/notes.txt") || len(some.Hidden) < 2 {
			t.Errorf("%v by a model: hidden %q\n%s", tt, some.Hidden, some.Diff)
		}
	}
	b.raw(b.dir, "commit", "-q", "-a", "-m", "third")
	b.put("sub/prod.env", "needle three\n") // alone
	if r := ask(command.ByModel, "code/diff", params{}); r.Diff != "" || len(r.Hidden) != 1 || r.Hidden[0] != "sub/prod.env" {
		t.Errorf("a secret file alone: %+v", r)
	}
}

// TestRevisionsAreCommits gives hashes of a secret file and of a folder of secret files, whose
// changes have no names that say so.
func TestRevisionsAreCommits(t *testing.T) {
	b := newBench(t)
	b.repo()
	b.put(".env", "needle of a file\n")
	b.put(".aws/config", "needle of a folder\n")
	b.raw(b.dir, "add", ".")
	b.raw(b.dir, "commit", "-q", "-m", "second")
	b.raw(b.dir, "tag", "-a", "-m", "of a file", "blob", "HEAD:.env")
	b.raw(b.dir, "tag", "-a", "-m", "of a commit", "v1", "HEAD~1")
	var objects []string
	for _, name := range []string{"HEAD:.env", "HEAD:.aws", "HEAD^{tree}"} {
		hash := strings.TrimSpace(b.raw(b.dir, "rev-parse", name))
		objects = append(objects, hash, hash[:7])
	}
	for _, object := range append(objects, "blob", "HEAD^{tree}") {
		for _, p := range []params{
			{"operation": "diff", "base": object, "paths": []string{"a.txt"}}, {"operation": "diff", "base": object}, {"operation": "diff", "base": object, "staged": true},
			{"operation": "log", "base": object}, {"operation": "show", "ref": object}, {"operation": "checkout", "base": object, "paths": []string{"config"}},
			{"operation": "branch", "branch": "new", "base": object}, {"operation": "checkout", "branch": "new", "create": true, "base": object},
		} {
			if r, err := b.try(p); err == nil || strings.Contains(err.Error(), "needle") {
				t.Errorf("%v: %+v, %v", p, r, err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "config")); err == nil {
		t.Error("a file of the folder was checked out under another name")
	}
	for _, p := range []params{{"operation": "diff", "base": "v1"}, {"operation": "log", "base": "v1"}, {"operation": "show", "ref": "v1"}} {
		if r := b.do(p); p["operation"] == "diff" && r.Of != "v1 and the workspace" {
			t.Errorf("%v: %+v", p, r)
		}
	}
}
