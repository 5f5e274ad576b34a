//go:build unix

package code_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const secret = "outside-secret"

// outsideFolder creates a folder with a file outside the workspace.
func outsideFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestNothingOutsideIsReached(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"in/f": "inside", "deep/er/x": ""})
	out := outsideFolder(t)
	rel, err := filepath.Rel(b.dir, out)
	if err != nil {
		t.Fatal(err)
	}
	link(t, out, filepath.Join(b.dir, "abs"))
	link(t, rel, filepath.Join(b.dir, "rel"))
	link(t, filepath.Join(out, "f"), filepath.Join(b.dir, "file"))
	link(t, filepath.Join(out, "new"), filepath.Join(b.dir, "dangling"))
	link(t, "../../abs", filepath.Join(b.dir, "deep/er/twice"))
	link(t, "/proc/self/root"+out, filepath.Join(b.dir, "proc"))
	link(t, "loop", filepath.Join(b.dir, "loop"))
	link(t, "..", filepath.Join(b.dir, "up"))
	for _, name := range []string{
		"abs/f", "rel/f", "file", "dangling", "deep/er/twice/f", "proc/f", "loop", "loop/f", "up/" + filepath.Base(out) + "/f", "up/x", filepath.Join(out, "f"), "../" + filepath.Base(out) + "/f", "..", "in/../../x",
	} {
		for _, by := range []command.By{command.ByStep, command.ByModel} {
			for _, c := range []struct {
				name string
				p    params
			}{
				{"code/read", params{}},
				{"code/write", params{"content": "changed"}},
				{"code/edit", params{"old": secret, "new": "changed"}},
				{"code/search", params{"pattern": "."}},
				{"code/tree", params{}},
			} {
				c.p["path"] = name
				got, err := b.try(by, c.name, c.p)
				if err == nil {
					t.Errorf("%s %q by %s: got %v, want an error", c.name, name, by, got)
				}
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(out, "f"))
	entries, _ := os.ReadDir(out)
	if err != nil || string(data) != secret || len(entries) != 1 {
		t.Errorf("the folder outside has changed: %q, %v, %v", data, entries, err)
	}
}

func TestLinksInsideAreFollowed(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"real/f": "x"})
	link(t, "real", filepath.Join(b.dir, "dir"))
	link(t, filepath.Join(b.dir, "real", "f"), filepath.Join(b.dir, "file"))
	link(t, "../dir/./f", filepath.Join(b.dir, "real", "again"))
	for _, name := range []string{"dir/f", "file", "real/again"} {
		if got := b.do("code/read", params{"path": name}); got["path"] != "real/f" {
			t.Errorf("%q is resolved to %v", name, got["path"])
		}
	}
	b.do("code/write", params{"path": "file", "content": "y"})
	if info, err := os.Lstat(filepath.Join(b.dir, "file")); err != nil || info.Mode()&os.ModeSymlink == 0 || b.get("real/f") != "y" {
		t.Errorf("writing through a link: %v, %v, %q", info, err, b.get("real/f"))
	}
}

func TestPipesAndHardLinksAreRefused(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"one": "x"})
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(b.dir, "one"), filepath.Join(b.dir, "two")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.try(command.ByStep, "code/read", params{"path": "pipe"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("read a pipe: %v", err)
	}
	for _, name := range []string{"pipe", "one", "two"} {
		if _, err := b.try(command.ByStep, "code/write", params{"path": name, "content": "y"}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("write %s: %v", name, err)
		}
	}
	if got := b.do("code/search", params{"pattern": "x"}); got["files"] != 2.0 {
		t.Errorf("searched %v files, want the two regular ones", got["files"])
	}
}

// TestModelsDoNotReadRepositories has models and agents list, read and search .git, whose objects
// are all versions of all files.
func TestModelsDoNotReadRepositories(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{".git/objects/ab/cdef": "needle", ".git/HEAD": "needle", "sub/.git": "gitdir: needle", "ok.txt": "needle"})
	link(t, ".git/objects", filepath.Join(b.dir, "innocent"))
	for _, by := range []command.By{command.ByModel, command.ByAgent} {
		for _, name := range []string{".git", ".git/objects", "innocent", ".GIT/objects"} {
			if got, err := b.try(by, "code/tree", params{"path": name, "all": true}); err == nil {
				t.Errorf("%s lists %q: %v", by, name, got)
			}
		}
		for _, name := range []string{".git/HEAD", "innocent/ab/cdef", "sub/.git"} {
			if _, err := b.try(by, "code/read", params{"path": name}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "git repository") {
				t.Errorf("%s reads %q: %v", by, name, err)
			}
		}
		if _, err := b.try(by, "code/write", params{"path": "sub/.git", "content": "gitdir: elsewhere"}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "steer tools") {
			t.Errorf("%s writes: %v", by, err)
		}
		if got, err := b.try(by, "code/tree", params{"all": true}); err != nil || strings.Contains(got["text"].(string), ".git") {
			t.Errorf("%s lists: %v, %v", by, got, err)
		}
		if got, err := b.try(by, "code/search", params{"pattern": "needle", "all": true}); err != nil || len(got["matches"].([]any)) != 1 {
			t.Errorf("%s finds: %v, %v", by, got, err)
		}
	}
	if got, err := b.try(command.ByStep, "code/read", params{"path": ".git/HEAD"}); err != nil || got["content"] != "needle" {
		t.Errorf("a step reads %v, %v", got, err)
	}
}

func TestModelsDoNotWriteFilesThatSteerTools(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{".git/hooks/pre-commit": "old", ".sentinel/state/token": "tok", "ok.txt": "x"})
	link(t, ".git/hooks", filepath.Join(b.dir, "innocent"))
	link(t, ".npmrc", filepath.Join(b.dir, "notes.txt"))
	link(t, ".sentinel/state", filepath.Join(b.dir, "data"))
	denied := []string{
		".git/hooks/pre-commit", "innocent/pre-commit", "innocent/post-commit", ".GIT/config", ".git/new/x", "notes.txt", ".sentinel/sentinels/x.json", ".continuum/sentinels/x.json",
		".github/workflows/ci.yml", ".vscode/tasks.json", ".claude/settings.json", ".mcp.json", ".envrc", "sub/.gitattributes", ".idea/a/b/c", "ok/../.bashrc",
	}
	for _, name := range denied {
		_, err := b.try(command.ByModel, "code/write", params{"path": name, "content": "evil"})
		if abi.CodeOf(err) != abi.Denied {
			t.Errorf("write %q: %v", name, err)
		}
	}
	if _, err := b.try(command.ByModel, "code/edit", params{"path": "innocent/pre-commit", "old": "old", "new": "evil"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("edit through a link: %v", err)
	}
	for _, name := range []string{".vscode", ".claude", ".git/new", ".idea"} {
		if _, err := os.Lstat(filepath.Join(b.dir, name)); err == nil {
			t.Errorf("%s was created", name)
		}
	}
	for _, name := range []string{".sentinel/state/token", "data/token"} {
		if _, err := b.try(command.ByModel, "code/read", params{"path": name}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("read %q: %v", name, err)
		}
	}
	for _, p := range []params{{"pattern": "tok", "all": true}, {"pattern": "tok", "path": ".sentinel", "all": true}} {
		if got, err := b.try(command.ByModel, "code/search", p); err != nil || len(got["matches"].([]any)) > 0 {
			t.Errorf("search found the token: %v, %v", got, err)
		}
	}
	if _, err := b.try(command.ByModel, "code/write", params{"path": "ok.txt", "content": "y"}); err != nil {
		t.Errorf("an ordinary file: %v", err)
	}
	b.do("code/write", params{"path": ".vscode/tasks.json", "content": "{}"}) // a step may write it
}

// TestModelsReplaceNoSecrets: a model must not read these files, so what it writes over them
// is made up, or comes from another party.
func TestModelsReplaceNoSecrets(t *testing.T) {
	const block = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"
	b := newHarness(t, code.Options{Rules: command.FileRules{Readable: []string{"test.pem"}}}, map[string]string{
		"deploy.pem": "key", "docs/notes.txt": block, "test.pem": "key", "ok.txt": "x",
	})
	link(t, "deploy.pem", filepath.Join(b.dir, "innocent"))
	for _, name := range []string{"deploy.pem", "innocent", "docs/notes.txt"} {
		_, err := b.try(command.ByModel, "code/write", params{"path": name, "content": "evil"})
		if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "do not replace files that hold secrets") {
			t.Errorf("write %q: %v", name, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "deploy.pem")); err != nil || string(text) != "key" {
		t.Errorf("deploy.pem: %q, %v", text, err)
	}
	for name, text := range map[string]string{"new.pem": "made by a model", "test.pem": "y", "ok.txt": "y"} {
		for _, repeated := range []bool{false, true} { // after a crash
			in, _ := json.Marshal(params{"path": name, "content": text})
			call := &command.Call{Command: "code/write", Params: in, By: command.ByModel, Workspace: b.dir, Repeated: repeated}
			if _, err := b.reg.Call(t.Context(), call); err != nil {
				t.Errorf("write %q: %v", name, err)
			}
		}
	}
	// Otherwise a model would learn by guesses what is in it.
	if _, err := b.try(command.ByModel, "code/write", params{"path": "deploy.pem", "content": "key"}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("the content that the file has: %v", err)
	}
	b.do("code/write", params{"path": "deploy.pem", "content": "new key"}) // a step may write it
}

// TestSymlinkRace replaces a folder by a link that leads outside, by a link to the
// Git hooks, and by itself, during reads, writes and searches.
func TestSymlinkRace(t *testing.T) {
	b := newHarness(t, code.Options{}, map[string]string{"a/f": "inside", ".git/hooks/f": "hook"})
	out := outsideFolder(t)
	replacements := 10_000
	if testing.Short() {
		replacements = 1_000
	}
	var over, succeeded atomic.Bool // succeeded: at least one read and one write
	var group sync.WaitGroup
	group.Go(func() {
		defer over.Store(true)
		dir, spare := filepath.Join(b.dir, "a"), filepath.Join(b.dir, "spare")
		// On a busy machine the other goroutine may see few of the replacements.
		for i := 0; i < replacements || !succeeded.Load() && i < 200*replacements; i++ {
			target := out
			if i%2 == 0 {
				target = ".git/hooks"
			}
			// A write may create the missing folder between the two calls.
			for os.Rename(dir, spare) != nil || os.Symlink(target, dir) != nil {
				if os.Rename(spare, dir) != nil {
					_ = os.RemoveAll(dir)
					_ = os.Rename(spare, dir)
				}
			}
			_ = os.Remove(dir)
			for os.Rename(spare, dir) != nil {
				_ = os.RemoveAll(dir)
			}
		}
	})
	reads, writes := 0, 0
	for !over.Load() {
		if got, err := b.try(command.ByModel, "code/read", params{"path": "a/f"}); err == nil {
			reads++
			if strings.Contains(got["content"].(string), secret) {
				t.Fatal("read outside")
			}
		}
		if _, err := b.try(command.ByModel, "code/write", params{"path": "a/f", "content": "inside"}); err == nil {
			writes++
		}
		if _, err := b.try(command.ByModel, "code/write", params{"path": "a/new/g", "content": "inside"}); err == nil {
			writes++
		}
		succeeded.Store(reads > 0 && writes > 0)
		if got, err := b.try(command.ByModel, "code/search", params{"pattern": secret}); err == nil && len(got["matches"].([]any)) > 0 {
			t.Fatal("searched outside")
		}
	}
	group.Wait()
	if reads == 0 || writes == 0 {
		t.Errorf("%d reads and %d writes succeeded: the test shows nothing", reads, writes)
	}
	if data, err := os.ReadFile(filepath.Join(out, "f")); err != nil || string(data) != secret {
		t.Errorf("the file outside is now %q, %v", data, err)
	}
	for _, dir := range []string{out, filepath.Join(b.dir, ".git/hooks")} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s now has %v, %v", dir, entries, err)
		}
	}
	if b.get(".git/hooks/f") != "hook" {
		t.Error("the hook was changed")
	}
}
