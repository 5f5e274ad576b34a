package worktree_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec/gitexectest"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Work on files of Git LFS, with its filters wherever git finds them: the branch has pointers,
// the objects are where the user's git finds them, and a push sends them first. The branch
// does not choose which server gets or has them.
func TestLFS(t *testing.T) {
	for _, real := range []bool{false, true} {
		for _, where := range []string{"system", "global", "local"} {
			t.Run(map[bool]string{false: "stand-in", true: "real"}[real]+"/"+where, func(t *testing.T) {
				b := newBench(t)
				settings := gitexectest.LFS(t, real)
				b.first()
				config := filepath.Join(t.TempDir(), "config")
				switch where {
				case "system":
					t.Setenv("GIT_CONFIG_NOSYSTEM", "0")
					t.Setenv("GIT_CONFIG_SYSTEM", config)
				case "global":
					t.Setenv("GIT_CONFIG_GLOBAL", config)
				case "local":
					config = filepath.Join(b.repo, ".git", "config")
				}
				old, _ := os.ReadFile(config)
				put(t, filepath.Dir(config), filepath.Base(config), string(old)+gitexectest.ConfigText(settings))
				b.change(".gitattributes", "*.bin filter=lfs -text\n")
				b.change("old.bin", "old content\n")
				remote := filepath.Join(t.TempDir(), "remote.git")
				b.git("init", "-q", "--bare", remote)
				b.git("remote", "add", "origin", remote)

				w := b.add(worktree.Add{})
				if got := read(t, filepath.Join(w.Path, "old.bin")); got != "old content\n" {
					t.Errorf("checked out %q", got)
				}
				put(t, w.Path, ".lfsconfig", gitexectest.OtherServer(t))
				put(t, w.Path, "new.bin", "new content\n")
				put(t, w.Path, "old.bin", "changed content\n")
				b.commit("work", "")
				for name, text := range map[string]string{"new.bin": "new content\n", "old.bin": "changed content\n"} {
					if got := b.git("cat-file", "-p", "sentinel/T-1:"+name); !strings.Contains(got, "oid sha256:"+digest(text)) {
						t.Errorf("%s is committed as %q", name, got)
					}
				}
				p, err := b.s.Push(t.Context(), "T-1", 0, "")
				if err != nil || !p.Pushed {
					t.Errorf("push: %+v, %v", p, err)
				}
				sent := gitexectest.LFSObjects(t, remote)
				for _, text := range []string{"old content\n", "new content\n", "changed content\n"} {
					if !slices.Contains(sent, digest(text)) {
						t.Errorf("the remote does not have the object of %q", text)
					}
				}
				put(t, w.Path, "late.bin", "late content\n")
				if r, err := b.s.Remove(t.Context(), "T-1", 0); err != nil || !r.Saved {
					t.Errorf("remove: %+v, %v", r, err)
				}
				b.git("checkout", "-q", "sentinel/T-1")
				if new, late := read(t, filepath.Join(b.repo, "new.bin")), read(t, filepath.Join(b.repo, "late.bin")); new != "new content\n" || late != "late content\n" {
					t.Errorf("the user has %q and %q", new, late)
				}
			})
		}
	}
}

// A branch whose objects cannot be sent is not pushed, and a file that is no object does not
// become one.
func TestLFSRefuses(t *testing.T) {
	b := newBench(t)
	settings := gitexectest.LFS(t, false)
	b.first()
	config := filepath.Join(t.TempDir(), "config")
	put(t, filepath.Dir(config), "config", gitexectest.ConfigText(settings))
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	b.change(".gitattributes", "*.bin filter=lfs -text\n")
	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("init", "-q", "--bare", remote)
	b.git("remote", "add", "origin", remote)
	w := b.add(worktree.Add{})
	put(t, w.Path, "new.bin", "new content\n")
	other := strings.Repeat("ab", 32)
	put(t, filepath.Join(filepath.Dir(w.Path), "git"), "lfs/objects/ab/ab/"+other, "not what the name says")
	b.commit("work", "")
	if have := gitexectest.LFSObjects(t, filepath.Join(b.repo, ".git")); !slices.Equal(have, []string{digest("new content\n")}) {
		t.Errorf("the repository has the objects %v", have)
	}
	gitexectest.WithoutLFS(t)
	p, err := b.s.Push(t.Context(), "T-1", 0, "")
	if err != nil || p.Pushed || !strings.Contains(p.Reason, "git-lfs") {
		t.Errorf("push: %+v, %v", p, err)
	}
	if refs := git(t, remote, "for-each-ref"); refs != "" {
		t.Errorf("the remote has %s", refs)
	}
}

// Without the filter the content would be committed where a pointer belongs.
func TestLFSThatIsNotSetUp(t *testing.T) {
	b := newBench(t)
	b.first()
	b.change("deep/old.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:"+digest("x")+"\nsize 1\n")
	b.change(".gitattributes", "*.bin filter=lfs -text\n")
	w := b.add(worktree.Add{})
	put(t, w.Path, "text.txt", "not of LFS\n")
	if c := b.commit("work", ""); !c.Changed {
		t.Errorf("got %+v", c)
	}
	put(t, w.Path, "deep/new.bin", "content\n")
	_, err := b.s.Commit(t.Context(), "T-1", 0, "work", "")
	refused(t, err, abi.Conflict, "deep/new.bin", "git lfs install")
}

// Objects that the user's clone does not have come from its remote; if they are nowhere, the
// error names the file.
func TestLFSObjectsOfTheRemote(t *testing.T) {
	b := newBench(t)
	settings := gitexectest.LFS(t, true)
	b.first()
	config := filepath.Join(t.TempDir(), "config")
	put(t, filepath.Dir(config), "config", gitexectest.ConfigText(settings))
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	b.change(".gitattributes", "*.bin filter=lfs -text\n")
	b.change("old.bin", "old content\n")
	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("init", "-q", "--bare", remote)
	b.git("remote", "add", "origin", "file://"+remote)
	b.git("lfs", "push", "origin", "main")
	if err := os.RemoveAll(filepath.Join(b.repo, ".git", "lfs")); err != nil {
		t.Fatal(err)
	}
	w := b.add(worktree.Add{})
	if got := read(t, filepath.Join(w.Path, "old.bin")); got != "old content\n" {
		t.Errorf("checked out %q", got)
	}
	if err := os.RemoveAll(filepath.Join(remote, "lfs")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.repo, ".git", "lfs")); err != nil {
		t.Fatal(err)
	}
	b.claim("T-2", 1)
	_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-2"})
	refused(t, err, abi.Unavailable, "old.bin", "git lfs fetch")
}
