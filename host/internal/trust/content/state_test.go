package content_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestState: a store that a host of this user made counts; one that came with the folder,
// or took its place, does not.
func TestState(t *testing.T) {
	p := newProject(t)
	state := filepath.Join(p.dir, "state")
	if err := p.folder().CheckState(state); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "store.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.folder().CheckState(state); err != nil {
		t.Errorf("own store: %v", err)
	}
	if err := os.WriteFile(filepath.Join(state, content.IdentityFile), []byte(strings.Repeat("x", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.folder().CheckState(state); abi.CodeOf(err) != abi.Denied {
		t.Errorf("store with another identity: %v", err)
	}

	foreign := newProject(t)
	foreign.write("state/store.db", "")
	state = filepath.Join(foreign.dir, "state")
	if err := foreign.folder().CheckState(state); abi.CodeOf(err) != abi.Denied {
		t.Errorf("store of a new folder: %v", err)
	}
	items, err := foreign.folder().Pending(state)
	if err != nil || len(items) != 1 || items[0].Kind != content.State {
		t.Fatalf("pending: %+v, %v", items, err)
	}
	items[0].Take = true
	if err := foreign.folder().Approve(items); err != nil {
		t.Fatal(err)
	}
	if err := foreign.folder().CheckState(state); err != nil {
		t.Errorf("trusted store: %v", err)
	}
	if err := foreign.folder().CheckState(t.TempDir()); err != nil {
		t.Errorf("store elsewhere: %v", err)
	}
}

// TestStateIsSetAside: what a store has that came with the folder is moved aside, also links, and a new store
// begins in its place. Nothing of it is removed.
func TestStateIsSetAside(t *testing.T) {
	p := newProject(t)
	state := filepath.Join(p.dir, "state")
	for n, want := range []string{content.AsideFolder, content.AsideFolder + "-2"} {
		p.write("state/store.db", "theirs")
		p.write("state/"+content.IdentityFile, strings.Repeat("x", 32))
		p.write("state/tokens.json", "{}")
		link := filepath.Join(state, "logs")
		if err := os.Symlink(t.TempDir(), link); err != nil {
			t.Skip("symbolic links: ", err)
		}
		items, err := p.folder().Pending(state)
		if err != nil || len(items) != 1 {
			t.Fatalf("%+v %v", items, err)
		}
		if err := p.folder().Approve(items); err != nil {
			t.Fatal(err)
		}
		if err := p.folder().CheckState(state); err != nil {
			t.Errorf("the new store: %v", err)
		}
		for _, name := range []string{"store.db", "tokens.json", "logs"} {
			if _, err := os.Lstat(filepath.Join(state, name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is there: %v", name, err)
			}
			if _, err := os.Lstat(filepath.Join(state, want, name)); err != nil {
				t.Errorf("round %d: %v", n, err)
			}
		}
	}
}

// TestStateWithLinks: a store that came with links is not trusted, since this program would write to what
// they lead to. Repositories and worktrees that came with it are removed.
func TestStateWithLinks(t *testing.T) {
	for _, name := range []string{"logs", "audit/audit.jsonl", "shell/a/b/out"} {
		p := newProject(t)
		p.write("state/store.db", "theirs")
		p.write("state/worktrees/T-1/file", "x")
		state := filepath.Join(p.dir, "state")
		link := filepath.Join(state, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		p.write("state/checkpoints/x/objects/zzz/1.pack", "")
		for _, at := range []string{link, filepath.Join(state, "worktrees/T-1/link"), filepath.Join(state, "checkpoints/x/objects/pack")} {
			if err := os.Symlink(t.TempDir(), at); err != nil {
				t.Skip("symbolic links: ", err)
			}
		}
		items, err := p.folder().Pending(state)
		if err != nil {
			t.Fatal(err)
		}
		items[0].Take = true
		if err := p.folder().Approve(items); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := p.folder().Approve(items); err != nil {
			t.Errorf("%s: without the link: %v", name, err)
		}
		for _, gone := range []string{"worktrees", "checkpoints"} {
			if _, err := os.Lstat(filepath.Join(state, gone)); !os.IsNotExist(err) {
				t.Errorf("%s stays: %v", gone, err)
			}
		}
	}
}

// TestStateByLink: a state folder that the project leads to by a link is refused by name, with its tokens, although its real
// path is elsewhere: a commit can put the link in the place of an ignored folder.
func TestStateByLink(t *testing.T) {
	for _, where := range []string{"state", "far/state"} {
		p := newProject(t)
		state := filepath.Join(p.dir, filepath.FromSlash(where))
		if err := p.folder().CheckState(state); err != nil {
			t.Fatal(err)
		}
		elsewhere := t.TempDir()
		if err := os.WriteFile(filepath.Join(elsewhere, "store.db"), []byte("theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(p.dir, strings.Split(where, "/")[0])
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		to := elsewhere
		if where != "state" {
			to = filepath.Dir(elsewhere)
			state = filepath.Join(link, filepath.Base(elsewhere))
		}
		if err := os.Symlink(to, link); err != nil {
			t.Skip("symbolic links: ", err)
		}
		for name, check := range map[string]func(string) error{"store": p.folder().CheckState, "tokens": p.folder().CheckTracked} {
			if err := check(state); !errors.Is(err, content.ErrUntrusted) || !strings.Contains(err.Error(), link) {
				t.Errorf("%s, %s: %v", where, name, err)
			}
		}
		if err := p.folder().CheckState(elsewhere); err != nil {
			t.Errorf("named by the user: %v", err)
		}
	}
}

// TestTrackedState: a store of which git tracks a file does not count: a commit can replace all but
// its identity. Once git tracks nothing of it, it is asked about, and its tokens are gone.
func TestTrackedState(t *testing.T) {
	p := newProject(t)
	p.git("init", "-q", "-b", "main")
	p.write(".gitignore", "/state/\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "one")
	state := filepath.Join(p.dir, "state")
	if err := p.folder().CheckState(state); err != nil {
		t.Fatal(err)
	}
	p.write("state/store.db", "mine")
	err := p.folder().WriteTokens(filepath.Join(state, "tokens.json"), []byte("[]"), func() error {
		p.write("state/tokens.json", "[]")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.folder().CheckState(state); err != nil {
		t.Fatalf("own store: %v", err)
	}
	p.git("checkout", "-q", "-b", "theirs")
	p.stage(".sentinel/state/store.db", "theirs")
	p.git("commit", "-qm", "two")
	p.git("checkout", "-qf", "main")
	p.write("state/store.db", "mine")
	lock := filepath.Join(p.work, ".git", "index.lock")
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.folder().CheckState(state); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("while git changes files: %v", err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := p.folder().CheckState(state); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	p.git("merge", "-q", "theirs")
	if text, err := os.ReadFile(filepath.Join(state, "store.db")); err != nil || string(text) != "theirs" {
		t.Fatalf("git wrote %q, %v", text, err)
	}
	err = p.folder().CheckState(state)
	if !errors.Is(err, content.ErrUntrusted) || !strings.Contains(err.Error(), "store.db") {
		t.Errorf("tracked: %v", err)
	}
	if items, err := p.folder().Pending(state); err != nil || len(items) != 0 {
		t.Errorf("pending while it is tracked: %+v, %v", items, err)
	}
	p.git("rm", "-q", "-r", "--cached", ".sentinel/state")
	p.git("commit", "-qm", "three")
	if err := p.folder().CheckState(state); !errors.Is(err, content.ErrUntrusted) {
		t.Errorf("not tracked any more: %v", err)
	}
	items, err := p.folder().Pending(state)
	if err != nil || len(items) != 1 || items[0].Kind != content.State {
		t.Fatalf("pending: %+v, %v", items, err)
	}
	items[0].Take = true
	if err := p.folder().Approve(items); err != nil {
		t.Fatal(err)
	}
	if err := p.folder().CheckState(state); err != nil {
		t.Errorf("trusted: %v", err)
	}
	if _, err := os.Stat(filepath.Join(state, "tokens.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("tokens that came with the store: %v", err)
	}
}

// TestStateDuringCommit: a hook of "git commit -a" may start this program.
func TestStateDuringCommit(t *testing.T) {
	p := newProject(t)
	p.git("init", "-q", "-b", "main")
	p.write(build, "{}\n")
	p.git("add", "-A")
	state := filepath.Join(p.dir, "state")
	for range 2 {
		index, err := os.ReadFile(filepath.Join(p.work, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		lock := filepath.Join(p.work, ".git", "index.lock")
		if err := os.WriteFile(lock, index, 0o644); err != nil {
			t.Fatal(err)
		}
		err = p.folder().CheckState(state)
		if tracked := strings.Contains(p.gitOutput("ls-files"), "state/"); tracked == (err == nil) {
			t.Errorf("tracked %v: %v", tracked, err)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		p.write("state/store.db", "")
		p.git("add", "-f", ".sentinel/state/store.db")
	}
}

// checkEnvironment asks about an environment file as it is.
func (p *project) checkEnvironment(workspace, path string) error {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(workspace, path))
	if err != nil {
		p.t.Fatal(err)
	}
	return p.folder().CheckEnvironment(workspace, path, text)
}
