//go:build unix

package worktree_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// kept returns the names of the worktrees that were set aside.
func (b *bench) kept() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(b.dir, "kept"))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// unkeepable puts a folder into a worktree whose path is too long for git, also for root.
func unkeepable(t *testing.T, tree string) {
	t.Helper()
	dir, err := os.OpenRoot(tree)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("x", 200)
	for range 25 {
		if err := dir.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := dir.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		dir.Close()
		dir = next
	}
	defer dir.Close()
	if err := dir.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// discardKept deletes at the end what the cleanup of t.TempDir cannot.
func discardKept(t *testing.T, b *bench) {
	t.Cleanup(func() { _ = exec.Command("rm", "-rf", b.dir).Run() })
}

// Files and folders without the right to be read are committed like others.
func TestRemoveWithoutRights(t *testing.T) {
	b := newBench(t)
	b.first()
	w := b.add(worktree.Add{})
	put(t, w.Path, "fixture", "of mode 0\n")
	put(t, w.Path, "locked/inner/file", "in a folder of mode 0\n")
	put(t, w.Path, "a.txt", "changed\n")
	for _, name := range []string{"fixture", "a.txt", "locked/inner/file", "locked/inner", "locked", "."} {
		if err := os.Chmod(filepath.Join(w.Path, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.s.Remove(t.Context(), "T-1", 1)
	if err != nil || !out.Removed || !out.Saved || len(out.LeftOut) > 0 || out.Kept != "" {
		t.Fatalf("remove: %+v, %v", out, err)
	}
	for name, want := range map[string]string{"fixture": "of mode 0", "locked/inner/file": "in a folder of mode 0", "a.txt": "changed"} {
		if got := b.git("show", "sentinel/T-1:"+name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A repository in a folder that could not be read is inspected once it can be: its filters are
// not executed.
func TestRemoveInspectsWhatItMakesReadable(t *testing.T) {
	b := newBench(t)
	b.first()
	w := b.add(worktree.Add{})
	inner, canary := filepath.Join(w.Path, "locked", "inner"), filepath.Join(t.TempDir(), "canary")
	git(t, w.Path, "init", "-q", inner)
	put(t, inner, "file", "1\n")
	put(t, inner, ".gitattributes", "* filter=x\n")
	git(t, inner, "add", ".")
	git(t, inner, "commit", "-q", "-m", "inner")
	git(t, w.Path, "add", "locked/inner")
	git(t, inner, "config", "filter.x.clean", "touch "+canary+"; cat")
	put(t, inner, "file", "2\n")
	locked := filepath.Dir(inner)
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	_, err := b.s.Remove(t.Context(), "T-1", 1)
	refused(t, err, abi.Denied, "filter.x.clean")
	if _, err := os.Stat(canary); err == nil {
		t.Error("a filter of the inner repository was executed")
	}
}

// What git cannot commit is named and kept, and the rest is committed.
func TestRemoveKeepsWhatItCan(t *testing.T) {
	b := newBench(t)
	discardKept(t, b)
	b.first()
	w := b.add(worktree.Add{})
	put(t, w.Path, "b.txt", "work\n")
	unkeepable(t, w.Path)
	out, err := b.s.Remove(t.Context(), "T-1", 1)
	if err != nil || !out.Removed || !out.Saved || len(out.LeftOut) != 1 || !strings.HasPrefix(out.LeftOut[0], `"xxx`) || !strings.HasSuffix(out.LeftOut[0], "its path is too long for git") || len(out.LeftOut[0]) > 300 {
		t.Fatalf("remove: %+v, %v", out, err)
	}
	if b.git("show", "sentinel/T-1:b.txt") != "work" {
		t.Error("the rest is not committed")
	}
	if list, _ := b.s.List(); len(list) > 0 || filepath.Dir(out.Kept) != filepath.Join(b.dir, "kept") {
		t.Errorf("left: %+v, kept in %s", list, out.Kept)
	}
	if _, err := os.Stat(filepath.Join(out.Kept, "tree", strings.Repeat("x", 200))); err != nil {
		t.Error(err)
	}
}

// A walk that makes files readable ends at a depth that no project has, and says where: a command makes a chain of
// thousands of folders in a second.
func TestRemoveBoundsDepth(t *testing.T) {
	b := newBench(t)
	discardKept(t, b)
	b.first()
	w := b.add(worktree.Add{})
	put(t, w.Path, "b.txt", "work\n")
	deep := filepath.Join(w.Path, strings.Repeat("d/", 260))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, deep, "c.txt", "deep\n")
	unkeepable(t, w.Path) // or git needs no help
	out, err := b.s.Remove(t.Context(), "T-1", 1)
	if err != nil || !slices.ContainsFunc(out.LeftOut, func(line string) bool { return strings.HasSuffix(line, "it has more than 250 folders above it") }) {
		t.Fatalf("remove: %+v, %v", out, err)
	}
}

// Worktrees that cannot be committed do not use up the number of worktrees: those of claims
// that have ended are set aside, and a warning names what they have.
func TestSweepMakesRoom(t *testing.T) {
	b := newBench(t)
	discardKept(t, b)
	b.first()
	var log bytes.Buffer
	s := b.open(worktree.Options{Most: 4, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	spoil := []func(path string){
		func(path string) { unkeepable(t, path) },
		func(path string) { // a repository inside
			git(t, path, "init", "-q", "inner")
			put(t, path, "inner/x.txt", "x\n")
			git(t, filepath.Join(path, "inner"), "add", ".")
			git(t, filepath.Join(path, "inner"), "commit", "-q", "-m", "x")
		},
		func(path string) { put(t, filepath.Dir(path), "worktree.json", "{") },
		func(path string) { put(t, filepath.Dir(path), "git/index.lock", "") }, // as if another git were at work
	}
	for i, f := range spoil {
		id := fmt.Sprint("N-", i)
		b.claim(id, 1)
		w, err := s.Add(t.Context(), worktree.Add{Ticket: id})
		if err != nil {
			t.Fatal(err)
		}
		put(t, w.Path, "work.txt", id)
		f(w.Path)
		b.claim(id, 0)
	}
	for i := range 4 {
		id := fmt.Sprint("T-", i)
		b.claim(id, 1)
		if _, err := s.Add(t.Context(), worktree.Add{Ticket: id}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if kept := b.kept(); len(kept) != 4 {
		t.Errorf("kept: %v", kept)
	}
	for _, id := range []string{"N-0", "N-1"} {
		if got := b.git("show", "sentinel/"+id+":work.txt"); got != id {
			t.Errorf("%s: %q is committed", id, got)
		}
	}
	for _, want := range []string{"its path is too long for git", `inner\": it is a git repository of its own`, "its record cannot be read", "index.lock", filepath.Join(b.dir, "kept")} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log.String())
		}
	}
}

// A person removes a worktree in any state.
func TestDiscard(t *testing.T) {
	for name, spoil := range map[string]func(b *bench, dir string){
		"lock":       func(b *bench, dir string) { put(b.t, dir, "git/index.lock", "") },
		"index":      func(b *bench, dir string) { put(b.t, dir, "git/index", "not one") },
		"record":     func(b *bench, dir string) { put(b.t, dir, "worktree.json", "not one") },
		"no git":     func(b *bench, dir string) { _ = os.Rename(filepath.Join(dir, "git"), filepath.Join(dir, "elsewhere")) },
		"repository": func(b *bench, dir string) { _ = os.Rename(b.repo, b.repo+".away") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.t = t
			b.first()
			w := b.add(worktree.Add{})
			put(t, w.Path, "b.txt", "work\n")
			spoil(b, filepath.Dir(w.Path))
			if out, err := b.s.Remove(t.Context(), "T-1", 1); err == nil || out.Removed {
				t.Fatalf("it can be removed without: %+v", out)
			}
			out, err := b.s.Discard(t.Context(), "T-1", 1)
			if err != nil || !out.Removed || len(out.LeftOut) != 1 || !strings.HasPrefix(out.LeftOut[0], "changes since the newest commit: ") {
				t.Fatalf("discard: %+v, %v", out, err)
			}
			if got, err := os.ReadFile(filepath.Join(out.Kept, "tree", "b.txt")); err != nil || string(got) != "work\n" {
				t.Errorf("kept: %q, %v", got, err)
			}
			if again, err := b.s.Discard(t.Context(), "T-1", 1); err != nil || again.Removed {
				t.Errorf("again: %+v, %v", again, err)
			}
			if name != "repository" {
				b.add(worktree.Add{})
			}
		})
	}
	b := newBench(t)
	b.first()
	b.add(worktree.Add{})
	_, err := b.s.Discard(t.Context(), "T-1", 7)
	refused(t, err, abi.Conflict, "claim 1")
	if out, err := b.s.Discard(t.Context(), "T-1", 1); err != nil || !out.Removed || out.Kept != "" {
		t.Errorf("one with nothing to keep: %+v, %v", out, err)
	}
}

// At most 16 worktrees are kept, the newest ones.
func TestKeptIsBounded(t *testing.T) {
	b := newBench(t)
	b.first()
	for i := range 30 {
		put(t, filepath.Join(b.dir, "kept"), fmt.Sprintf("20200101T0000%02d.000000Z-T-1/tree/a.txt", i), "old")
	}
	w := b.add(worktree.Add{})
	put(t, filepath.Dir(w.Path), "worktree.json", "not one")
	out, err := b.s.Discard(t.Context(), "T-1", 1)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.kept()
	if len(kept) != 16 || kept[0] != "20200101T000015.000000Z-T-1" || !slices.Contains(kept, filepath.Base(out.Kept)) {
		t.Errorf("kept: %v", kept)
	}
	s := b.open(worktree.Options{Bytes: 1})
	b.claim("T-2", 1)
	put(t, filepath.Join(b.dir, "trees", "T-2"), "worktree.json", "not one")
	if out, err = s.Discard(t.Context(), "T-2", 1); err != nil || !slices.Equal(b.kept(), []string{filepath.Base(out.Kept)}) {
		t.Errorf("kept: %v, %v", b.kept(), err)
	}
}

// A file of another user stays where a person finds it, and keeps nothing else.
func TestRemoveWithFileOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	b := newBench(t)
	b.first()
	w := b.add(worktree.Add{})
	put(t, w.Path, "b.txt", "work\n")
	put(t, w.Path, ".gitignore", "target\n")
	root := filepath.Dir(filepath.Dir(b.repo)) // of the folders of this test
	program := filepath.Join(root, "worktree.test")
	if out, err := exec.Command("cp", os.Args[0], program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const other = "65534"
	for _, name := range []string{"secret", "target"} { // git ignores the second one
		put(t, w.Path, name, "of root\n")
	}
	for _, args := range [][]string{{"chown", "-R", other + ":" + other, root}, {"chown", "0", w.Path + "/secret", w.Path + "/target"}, {"chmod", "600", w.Path + "/secret", w.Path + "/target"}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "WORKTREE_STEP=remove", "WORKTREE_DIR="+b.dir, "WORKTREE_REPO="+b.repo)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("chown", "-R", "0:0", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if b.git("show", "sentinel/T-1:b.txt") != "work" || strings.Contains(b.git("ls-tree", "--name-only", "sentinel/T-1"), "secret") {
		t.Error("the commit has other files")
	}
	kept := b.kept()
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "kept", kept[0], "tree", "secret")); err != nil {
		t.Error(err)
	}
}
