package worktree_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// bench is a repository with tickets about it.
type bench struct {
	t       *testing.T
	repo    string
	dir     string
	tickets map[string]worktree.Ticket
	s       *worktree.Service
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git on this machine")
	}
	// The person's own configuration must not decide what a test sees.
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("HOME", t.TempDir())
	b := &bench{t: t, repo: filepath.Join(t.TempDir(), "repo"), dir: filepath.Join(t.TempDir(), "trees"), tickets: map[string]worktree.Ticket{}}
	b.claim("T-1", 1)
	b.s = b.open(worktree.Options{})
	return b
}

// open returns a service, as another process has it.
func (b *bench) open(opt worktree.Options) *worktree.Service {
	opt.Dir, opt.Ticket = b.dir, b.ticket
	s := worktree.New(opt)
	b.t.Cleanup(s.Close)
	return s
}

func (b *bench) claim(id string, token uint64) {
	b.tickets[id] = worktree.Ticket{ID: id, RepoURL: b.repo, Token: token}
}

// ticket is what the host knows of a ticket.
func (b *bench) ticket(_ context.Context, id string, token uint64) (worktree.Ticket, error) {
	t, ok := b.tickets[id]
	switch {
	case !ok:
		return t, &abi.Error{Code: abi.NotFound, Permanent: true, Message: "no ticket " + id}
	case token != 0 && token != t.Token:
		return t, &abi.Error{Code: abi.Conflict, Permanent: true, Message: "the claim has ended"}
	}
	return t, nil
}

// git runs the machine's own git.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) git(args ...string) string { b.t.Helper(); return git(b.t, b.repo, args...) }

// first makes the repository with one commit.
func (b *bench) first() {
	b.t.Helper()
	if err := os.MkdirAll(b.repo, 0o755); err != nil {
		b.t.Fatal(err)
	}
	b.git("init", "-q")
	b.change("a.txt", "one\ntwo\nthree\n")
}

// change commits a file to the base.
func (b *bench) change(name, text string) string {
	b.t.Helper()
	put(b.t, b.repo, name, text)
	b.git("add", "--", name)
	b.git("commit", "-q", "-m", "change "+name)
	return b.git("rev-parse", "HEAD")
}

func (b *bench) add(in worktree.Add) worktree.Added {
	b.t.Helper()
	if in.Ticket == "" {
		in.Ticket = "T-1"
	}
	out, err := b.s.Add(b.t.Context(), in)
	if err != nil {
		b.t.Fatalf("add: %v", err)
	}
	return out
}

func (b *bench) commit(message, key string) worktree.Committed {
	b.t.Helper()
	out, err := b.s.Commit(b.t.Context(), "T-1", 0, message, key)
	if err != nil {
		b.t.Fatalf("commit: %v", err)
	}
	return out
}

// users is what the user's repository has that no step may change.
func (b *bench) users() map[string]string {
	b.t.Helper()
	seen := map[string]string{"HEAD": b.git("rev-parse", "HEAD", "--symbolic-full-name", "HEAD"), "status": b.git("status", "--porcelain"), "branches": ""}
	for ref := range strings.SplitSeq(b.git("for-each-ref", "refs/heads", "--format=%(refname) %(objectname)"), "\n") {
		if !strings.HasPrefix(ref, "refs/heads/sentinel/") {
			seen["branches"] += ref + "\n"
		}
	}
	err := filepath.WalkDir(b.repo, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(b.repo, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == ".git/objects" || rel == ".git/refs" || rel == ".git/logs"):
			return filepath.SkipDir
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		seen[rel] = string(text)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return seen
}

func refused(t *testing.T, err error, code abi.Code, words ...string) {
	t.Helper()
	e := abi.As(err)
	if e == nil || e.Code != code {
		t.Errorf("got %v, want code %s", err, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(e.Message+e.Hint, word) {
			t.Errorf("error %q, hint %q: want %q", e.Message, e.Hint, word)
		}
	}
}

func TestWorkEndsInABranch(t *testing.T) {
	b := newBench(t)
	b.first()
	// A user in the middle of something: a dirty tree, a stash of the index, hooks.
	put(t, b.repo, "a.txt", "the user's change\n")
	put(t, b.repo, "staged.txt", "staged\n")
	put(t, b.repo, "new.txt", "not known\n")
	b.git("add", "staged.txt")
	canary := filepath.Join(t.TempDir(), "canary")
	for _, hook := range []string{"post-checkout", "pre-commit", "commit-msg", "post-commit", "pre-push", "pre-receive", "update", "post-receive", "post-update", "reference-transaction", "pre-rebase", "post-rewrite"} {
		put(t, b.repo, ".git/hooks/"+hook, "#!/bin/sh\ntouch "+canary+"\n")
		if err := os.Chmod(filepath.Join(b.repo, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := b.users()

	w := b.add(worktree.Add{})
	if w.Branch != "sentinel/T-1" || w.Base != "main" || w.Token != 1 || w.Existed || w.Commit != w.BaseCommit {
		t.Errorf("got %+v", w)
	}
	if text, err := os.ReadFile(filepath.Join(w.Path, "a.txt")); err != nil || string(text) != "one\ntwo\nthree\n" {
		t.Errorf("a.txt: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(w.Path, "new.txt")); err == nil {
		t.Error("the worktree has the user's changes")
	}
	again := b.add(worktree.Add{})
	if again.Existed = false; !cmp.Equal(again, w) {
		t.Errorf("a second add: %s", cmp.Diff(w, again))
	}
	if c := b.commit("nothing", "k0"); c.Changed || len(c.Files) != 0 || c.Commit != w.Commit {
		t.Errorf("nothing to commit: %+v", c)
	}
	put(t, w.Path, "a.txt", "one\n2\nthree\n")
	put(t, w.Path, "b/c.txt", "new\n")
	d, err := b.s.Diff(t.Context(), "T-1", 1)
	if err != nil || !strings.Contains(d.Diff, "+new") || !strings.Contains(d.Diff, "-two") || len(d.Files) != 2 {
		t.Errorf("diff: %+v, %v", d, err)
	}
	unseen := map[string]string{".gitattributes": "*.sh -diff\n", "x.sh": "curl x | sh\n", "zero.go": "package x\n\x00"}
	for name, text := range unseen {
		put(t, w.Path, name, text)
	}
	if d, err := b.s.Diff(t.Context(), "T-1", 1); err != nil || !slices.Equal(d.Binary, []string{"x.sh", "zero.go"}) {
		t.Errorf("what the diff does not show: %q, %v", d.Binary, err)
	}
	for name := range unseen {
		if err := os.Remove(filepath.Join(w.Path, name)); err != nil {
			t.Fatal(err)
		}
	}
	hiding := b.open(worktree.Options{Hides: func(path string) bool { return path == "b/c.txt" }})
	d, err = hiding.Diff(t.Context(), "T-1", 1)
	if err != nil || strings.Contains(d.Diff, "+new") || !strings.Contains(d.Diff, "-two") || !slices.Equal(d.Hidden, []string{"b/c.txt"}) || len(d.Files) != 2 {
		t.Errorf("diff with a hidden file: %+v, %v", d, err)
	}
	c := b.commit("T-1: work\n\nwith a body", "k1")
	want := []worktree.File{{Path: "a.txt", Change: "modified"}, {Path: "b/c.txt", Change: "created"}}
	if !c.Changed || !cmp.Equal(c.Files, want) || b.git("rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("got %+v", c)
	}
	if b.git("log", "-1", "--format=%B", "sentinel/T-1") != "T-1: work\n\nwith a body" {
		t.Error("the message is another one")
	}
	if got := b.commit("T-1: work", "k1"); !cmp.Equal(got, c) {
		t.Errorf("repeated: %s", cmp.Diff(c, got))
	}
	list, err := b.s.List()
	if err != nil || len(list) != 1 || list[0].Ticket != "T-1" || list[0].Commit != c.Commit {
		t.Errorf("list: %+v, %v", list, err)
	}
	put(t, w.Path, "late.txt", "not committed\n")
	r, err := b.s.Remove(t.Context(), "T-1", 1)
	if err != nil || !r.Removed || !r.Saved || r.Ref != "" || b.git("show", "sentinel/T-1:late.txt") != "not committed" || b.git("rev-parse", "sentinel/T-1") != r.Commit {
		t.Errorf("remove: %+v, %v", r, err)
	}
	if r, err := b.s.Remove(t.Context(), "T-1", 1); err != nil || r.Removed {
		t.Errorf("a second remove: %+v, %v", r, err)
	}
	if entries, _ := os.ReadDir(filepath.Join(b.dir, "trees")); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
	if diff := cmp.Diff(before, b.users()); diff != "" {
		t.Errorf("the user's repository was changed: %s", diff)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a hook was executed")
	}
}

func TestMovedBase(t *testing.T) {
	b := newBench(t)
	b.first()
	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "one\nours\nthree\n")
	_, err := b.s.Rebase(t.Context(), "T-1", 0)
	refused(t, err, abi.Conflict, "not committed")
	c := b.commit("ours", "")
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || r.Moved || r.Conflict || r.Commit != c.Commit {
		t.Errorf("a base that stayed: %+v, %v", r, err)
	}
	base := b.change("other.txt", "theirs\n")
	r, err := b.s.Rebase(t.Context(), "T-1", 0)
	if err != nil || !r.Moved || r.Conflict || r.BaseCommit != base || b.git("rev-parse", "sentinel/T-1~1") != base || b.git("rev-parse", "sentinel/T-1") != r.Commit {
		t.Fatalf("a base that moved: %+v, %v", r, err)
	}
	if text, _ := os.ReadFile(filepath.Join(w.Path, "a.txt")); string(text) != "one\nours\nthree\n" {
		t.Errorf("a.txt: %q", text)
	}
}

// TestConflictsOfSecrets: the text of a conflict becomes a prompt, so that it leaves out files
// that models do not read.
func TestConflictsOfSecrets(t *testing.T) {
	b := newBench(t)
	b.first()
	b.change("*.pem", "key one\n")
	w := b.add(worktree.Add{})
	b.s = b.open(worktree.Options{Hides: func(path string) bool { return strings.HasSuffix(path, ".pem") }})
	put(t, w.Path, "a.txt", "ours\n")
	put(t, w.Path, "*.pem", "key two\n")
	b.commit("work", "k1")
	b.change("a.txt", "theirs\n")
	b.change("*.pem", "key three\n")
	r, err := b.s.Rebase(t.Context(), "T-1", 0)
	if err != nil || !slices.Equal(r.Files, []string{"*.pem", "a.txt"}) || !strings.Contains(r.Text, "theirs") || strings.Contains(r.Text, "key") {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestTextsWithKeys: neither a diff nor the text of a conflict has a private key, in a file of any name, on either side.
func TestTextsWithKeys(t *testing.T) {
	const begin, end = "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n"
	sealing := worktree.Options{
		Hides:  func(string) bool { return false },
		Sealed: func(_ string, data []byte) bool { return strings.Contains(string(data), "PRIVATE KEY-----\n") },
	}
	b := newBench(t)
	b.first()
	b.change("was.txt", begin+"key one\n"+end)
	b.change("theirs.txt", "x\n")
	b.change("mine.txt", "x\n")
	w := b.add(worktree.Add{})
	b.s = b.open(sealing)
	put(t, w.Path, "a.txt", "ours\n")
	put(t, w.Path, "was.txt", "now none\n")
	put(t, w.Path, "mine.txt", begin+"key two\n"+end)
	put(t, w.Path, "theirs.txt", "ours too\n")
	d, err := b.s.Diff(t.Context(), "T-1", 1)
	if err != nil || strings.Contains(d.Diff, "key ") || !strings.Contains(d.Diff, "+ours") || !slices.Equal(d.Hidden, []string{"mine.txt", "was.txt"}) {
		t.Errorf("diff: %+v, %v", d, err)
	}
	b.commit("work", "k1")
	b.change("a.txt", "theirs\n")
	b.change("was.txt", begin+"key three\n"+end)
	b.change("mine.txt", "y\n")
	b.change("theirs.txt", begin+"key four\n"+end)
	r, err := b.s.Rebase(t.Context(), "T-1", 0)
	if err != nil || !slices.Equal(r.Files, []string{"a.txt", "mine.txt", "theirs.txt", "was.txt"}) || !strings.Contains(r.Text, "theirs") || strings.Contains(r.Text, "key ") {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestConflict: the worktree stands on the new base with both sides in its files, and the
// commit that resolves them is the only one of the branch.
func TestConflict(t *testing.T) {
	b := newBench(t)
	b.first()
	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "one\nours\nthree\n")
	b.commit("first", "")
	put(t, w.Path, "new.txt", "new\n")
	c := b.commit("second", "")
	base := b.change("a.txt", "one\ntheirs\nthree\n")
	for range 2 {
		r, err := b.s.Rebase(t.Context(), "T-1", 0)
		if err != nil || !r.Conflict || !r.Moved || r.Commit != c.Commit || r.BaseCommit != base || !slices.Equal(r.Files, []string{"a.txt"}) || !strings.Contains(r.Text, "ours") || !strings.Contains(r.Text, "theirs") {
			t.Fatalf("a conflict: %+v, %v", r, err)
		}
	}
	text, _ := os.ReadFile(filepath.Join(w.Path, "a.txt"))
	if !strings.Contains(string(text), "<<<<<<< ") || !strings.Contains(string(text), "ours\n") || !strings.Contains(string(text), "theirs\n") || b.git("rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("behind a conflict: a.txt %q", text)
	}
	_, err := b.s.Commit(t.Context(), "T-1", 0, "nothing", "")
	refused(t, err, abi.Conflict, "a.txt still has conflict markers")
	put(t, w.Path, "a.txt", "one\nours\ntheirs\nthree\n")
	if got := b.commit("both", ""); !got.Changed || b.git("rev-parse", "sentinel/T-1~1") != base || b.git("show", "sentinel/T-1:new.txt") != "new" || len(got.Files) != 1 {
		t.Errorf("resolved: %+v\n%s", got, b.git("log", "--oneline", "sentinel/T-1"))
	}
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || r.Conflict || r.Moved {
		t.Errorf("behind the resolution: %+v, %v", r, err)
	}
	// What a later commit reverts does not conflict.
	put(t, w.Path, "a.txt", "one\ntheirs\nthree\n")
	b.commit("take back", "")
	base = b.change("a.txt", "one\ntheirs again\nthree\n")
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || r.Conflict || b.git("rev-parse", "sentinel/T-1~1") != base || b.git("show", "sentinel/T-1:a.txt") != "one\ntheirs again\nthree" {
		t.Errorf("taken back: %+v, %v", r, err)
	}
	// A deleted file and a changed one have no markers; the agent's files hold.
	put(t, w.Path, "new.txt", "newer\n")
	b.commit("newer", "")
	b.change("new.txt", "theirs\n")
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || !r.Conflict || !slices.Equal(r.Files, []string{"new.txt"}) {
		t.Errorf("both made it: %+v, %v", r, err)
	}
	put(t, w.Path, "new.txt", "theirs\n")
	if got := b.commit("theirs", ""); got.Commit != b.git("rev-parse", "main") || b.git("rev-list", "--count", "main..sentinel/T-1") != "0" {
		t.Errorf("the base has it all: %+v", got)
	}
	// A worktree that is removed with its conflict leaves the branch as it was.
	put(t, w.Path, "a.txt", "last\n")
	c = b.commit("last", "")
	b.change("a.txt", "theirs\n")
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || !r.Conflict {
		t.Errorf("a conflict: %+v, %v", r, err)
	}
	if got, err := b.s.Remove(t.Context(), "T-1", 0); err != nil || got.Saved || got.Commit != c.Commit || b.git("rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("removed: %+v, %v", got, err)
	}
}

func TestClaims(t *testing.T) {
	b := newBench(t)
	b.first()
	b.claim("T-2", 0)
	_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-2"})
	refused(t, err, abi.Conflict, "not claimed")
	_, err = b.s.Add(t.Context(), worktree.Add{Ticket: "T-3"})
	refused(t, err, abi.NotFound)
	_, err = b.s.Commit(t.Context(), "T-1", 0, "m", "")
	refused(t, err, abi.NotFound, "worktree/add")

	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "claim 1\n")
	first := b.commit("claim 1", "")
	put(t, w.Path, "late.txt", "of a dead claim\n")
	b.claim("T-1", 2)
	_, err = b.s.Commit(t.Context(), "T-1", 1, "late", "")
	refused(t, err, abi.Conflict)
	_, err = b.s.Commit(t.Context(), "T-1", 0, "late", "")
	refused(t, err, abi.Conflict, "claim 1", "worktree/add")
	_, err = b.s.Push(t.Context(), "T-1", 0, "")
	refused(t, err, abi.Conflict)

	w = b.add(worktree.Add{})
	if w.Token != 2 || w.Commit != b.git("rev-parse", "main") || w.Existed {
		t.Errorf("of the second claim: %+v", w)
	}
	if _, err := os.Stat(filepath.Join(w.Path, "late.txt")); err == nil {
		t.Error("the second claim has files of the first")
	}
	kept := b.git("for-each-ref", "--format=%(refname)", "refs/sentinel/attempts/T-1")
	if kept == "" || b.git("show", kept+":late.txt") != "of a dead claim" || b.git("rev-parse", kept+"~1") != first.Commit {
		t.Errorf("the work of the first claim is lost: %q", kept)
	}
	put(t, w.Path, "a.txt", "claim 2\n")
	second := b.commit("claim 2", "")
	if b.git("rev-parse", "sentinel/T-1") != second.Commit {
		t.Error("the branch is not that of the second claim")
	}
	b.claim("T-1", 3)
	w = b.add(worktree.Add{Continue: true})
	if w.Commit != second.Commit || w.BaseCommit != b.git("rev-parse", "main") {
		t.Errorf("continued: %+v", w)
	}
	put(t, w.Path, "b.txt", "more\n")
	if c := b.commit("claim 3", ""); b.git("rev-parse", "sentinel/T-1~1") != second.Commit || len(c.Files) != 1 {
		t.Errorf("continued: %+v", c)
	}
	// The ticket is done, or its process was killed and its lease expired.
	put(t, w.Path, "c.txt", "unfinished\n")
	b.claim("T-1", 0)
	if err := b.open(worktree.Options{}).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, _ := b.s.List(); len(list) > 0 || b.git("show", "sentinel/T-1:c.txt") != "unfinished" {
		t.Errorf("behind a sweep: %+v", list)
	}
}

func TestLimits(t *testing.T) {
	b := newBench(t)
	b.first()
	s := b.open(worktree.Options{Most: 2, Bytes: 1 << 20})
	for i := range 2 {
		b.claim(fmt.Sprint("N-", i), 1)
		if _, err := s.Add(t.Context(), worktree.Add{Ticket: fmt.Sprint("N-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
	refused(t, err, abi.Limit, "2 worktrees", "N-0, N-1", "worktrees.most")
	b.claim("N-0", 0)
	w, err := s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
	if err != nil {
		t.Fatalf("a claim has ended: %v", err)
	}
	put(t, w.Path, "big.bin", strings.Repeat("x", 2<<20))
	_, err = s.Commit(t.Context(), "T-1", 0, "big", "")
	refused(t, err, abi.Limit, "at most 1", "N-1", "worktrees.size")
	if err := os.Remove(filepath.Join(w.Path, "big.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), "T-1", 0, "small", ""); err != nil {
		t.Error(err)
	}
	b.change("big.bin", strings.Repeat("x", 2<<20))
	b.claim("N-1", 0)
	b.claim("N-2", 1)
	_, err = s.Add(t.Context(), worktree.Add{Ticket: "N-2"})
	refused(t, err, abi.Limit, "worktrees.size")
	if list, _ := s.List(); len(list) != 1 {
		t.Errorf("left: %+v", list)
	}
}

func TestOddRepositories(t *testing.T) {
	b := newBench(t)
	add := func(in worktree.Add) error {
		in.Ticket = "T-1"
		_, err := b.s.Add(t.Context(), in)
		return err
	}
	refused(t, add(worktree.Add{}), abi.NotFound, b.repo)
	if err := os.MkdirAll(b.repo, 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, add(worktree.Add{}), abi.NotFound, "not a git repository")
	b.git("init", "-q")
	refused(t, add(worktree.Add{}), abi.NotFound, "no commits", "first commit")
	commit := b.change("a.txt", "x\n")
	refused(t, add(worktree.Add{Base: "gone"}), abi.NotFound, "gone")
	refused(t, add(worktree.Add{Branch: "main"}), abi.BadFields, "is the base")
	b.git("branch", "users")
	refused(t, add(worktree.Add{Branch: "users"}), abi.Conflict, "users", "another branch")
	refused(t, add(worktree.Add{Branch: "users/folder"}), abi.Conflict, "a branch is named as a folder of it", "rename")
	if b.git("rev-parse", "users") != commit {
		t.Error("the user's branch was changed")
	}
	b.git("checkout", "-q", "--detach")
	refused(t, add(worktree.Add{}), abi.BadFields, "on no branch")
	if err := add(worktree.Add{Base: "main"}); err != nil {
		t.Error(err)
	}
	if _, err := b.s.Remove(t.Context(), "T-1", 0); err != nil {
		t.Error(err)
	}
	// A bare repository, and a linked worktree of the user.
	bare := filepath.Join(t.TempDir(), "bare.git")
	b.git("clone", "-q", "--bare", "--single-branch", "--branch=main", b.repo, bare)
	linked := filepath.Join(t.TempDir(), "linked")
	b.git("worktree", "add", "-q", "-b", "topic", linked, "main")
	for i, c := range []struct{ repo, base string }{{bare, "main"}, {linked, "topic"}, {"file://" + b.repo, "topic"}} {
		b.claim("T-1", uint64(i+2))
		in := worktree.Add{Repo: c.repo, Base: c.base}
		if c.repo == linked {
			in.Base = "" // its own current branch
		}
		w := b.add(in)
		put(t, w.Path, "b.txt", c.repo)
		if got := b.commit("work", ""); w.Base != c.base || !got.Changed {
			t.Errorf("%s: %+v, %+v", c.repo, w, got)
		}
	}
	// The branch of the worktree is checked out by the user who looks at it.
	b.git("worktree", "add", "-q", filepath.Join(t.TempDir(), "look"), "sentinel/T-1")
	list, _ := b.s.List()
	put(t, list[0].Path, "c.txt", "late")
	_, err := b.s.Commit(t.Context(), "T-1", 0, "late", "")
	refused(t, err, abi.Conflict, "checked out", "another branch")
	r, err := b.s.Remove(t.Context(), "T-1", 0)
	if err != nil || !strings.HasPrefix(r.Ref, "refs/sentinel/attempts/T-1/") || b.git("show", r.Ref+":c.txt") != "late" {
		t.Errorf("remove: %+v, %v", r, err)
	}
}

// TestBranchesHideNothing: no branch of a ticket has a name that means something else in the repository of
// the user, in the ticket or in the call.
func TestBranchesHideNothing(t *testing.T) {
	b := newBench(t)
	b.first()
	b.git("tag", "v1")
	b.git("tag", "-a", "-m", "x", "v2")
	b.git("remote", "add", "team/a", "https://example.org/a.git")
	b.git("update-ref", "refs/remotes/gone/main", "HEAD")
	b.git("update-ref", "refs/remotes/old/HEAD", "HEAD")
	b.git("update-ref", "refs/notes/x", "HEAD")
	head := b.git("rev-parse", "HEAD")
	for _, name := range []string{
		"origin/main", "refs/heads/main", "heads/x", "FETCH_HEAD", head[:7], head, "sentinel-default", "HEAD~1", "a..b",
		"team/a/main", "team/a", "TEAM/A/x", "gone/main", "old", "v1", "v2", "notes/x", "v1-0-g" + head[:7],
	} {
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Branch: name})
		refused(t, err, abi.BadFields, "branch")
		b.tickets["T-1"] = worktree.Ticket{ID: "T-1", RepoURL: b.repo, Token: 1, Branch: name}
		_, err = b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Bound: true})
		refused(t, err, abi.BadFields, "branch")
		b.claim("T-1", 1)
	}
	if got := b.git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/sentinel"); got != "refs/heads/main" {
		t.Errorf("references: %s", got)
	}
	b.git("branch", "gone/other") // the user's own branch besides
	if got := b.add(worktree.Add{Branch: "team/b"}); got.Branch != "team/b" {
		t.Errorf("%+v", got)
	}
	b.git("tag", "team/b") // later, by the user: the work goes on
	b.claim("T-1", 2)
	if got := b.add(worktree.Add{Branch: "team/b"}); got.Branch != "team/b" {
		t.Errorf("the next claim: %+v", got)
	}
}

func TestSubmodules(t *testing.T) {
	b := newBench(t)
	b.first()
	lib := filepath.Join(t.TempDir(), "lib")
	git(t, b.repo, "init", "-q", lib)
	put(t, lib, "lib.txt", "x\n")
	git(t, lib, "add", ".")
	git(t, lib, "commit", "-q", "-m", "lib")
	b.git("submodule", "--quiet", "add", "--", lib, "vendor/lib")
	b.git("commit", "-q", "-m", "submodule")
	pinned := b.git("rev-parse", "HEAD:vendor/lib")
	before := b.users()
	w := b.add(worktree.Add{})
	if !slices.Equal(w.Submodules, []string{"vendor/lib"}) {
		t.Errorf("got %+v", w)
	}
	if left, _ := os.ReadDir(filepath.Join(w.Path, "vendor/lib")); len(left) > 0 {
		t.Errorf("the submodule has files: %v", left)
	}
	put(t, w.Path, "b.txt", "x\n")
	c := b.commit("work", "")
	if len(c.Files) != 1 || b.git("rev-parse", "sentinel/T-1:vendor/lib") != pinned {
		t.Errorf("got %+v", c)
	}
	b.change("c.txt", "y\n")
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || !r.Moved || r.Conflict {
		t.Errorf("rebase: %+v, %v", r, err)
	}
	// An agent makes a repository inside: a commit would have none of its files.
	git(t, w.Path, "init", "-q", filepath.Join(w.Path, "inner"))
	put(t, w.Path, "inner/x.txt", "x\n")
	git(t, filepath.Join(w.Path, "inner"), "add", ".")
	git(t, filepath.Join(w.Path, "inner"), "commit", "-q", "-m", "x")
	_, err := b.s.Commit(t.Context(), "T-1", 0, "inner", "")
	refused(t, err, abi.Conflict, "inner", "inner/.git")
	_, err = b.s.Remove(t.Context(), "T-1", 0)
	if err == nil || !strings.Contains(err.Error(), "not removed") || !strings.Contains(err.Error(), "inner/.git") {
		t.Errorf("remove: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(w.Path, "inner", ".git")); err != nil {
		t.Fatal(err)
	}
	if c := b.commit("inner", ""); len(c.Files) != 1 {
		t.Errorf("got %+v", c)
	}
	delete(before, "c.txt")
	after := b.users()
	for name, text := range before {
		if strings.HasPrefix(name, ".git/config") && text != after[name] {
			t.Errorf("%s was changed: %s", name, cmp.Diff(text, after[name]))
		}
	}
}

// TestAgentsInTheTree: what is executed in a worktree changes neither the user's
// repository nor what the next step of the host does.
func TestAgentsInTheTree(t *testing.T) {
	b := newBench(t)
	b.first()
	before := b.users()
	w := b.add(worktree.Add{})
	canary := filepath.Join(t.TempDir(), "canary")
	script := "touch " + canary + "; cat"
	for _, args := range [][]string{
		{"config", "filter.evil.clean", script}, {"config", "filter.evil.smudge", script}, {"config", "core.fsmonitor", script}, {"config", "core.hooksPath", w.Path},
		{"config", "merge.evil.driver", script}, {"config", "diff.evil.command", script}, {"config", "core.sshCommand", script}, {"config", "core.worktree", b.repo},
	} {
		git(t, w.Path, args...)
	}
	put(t, w.Path, ".gitattributes", "* filter=evil merge=evil diff=evil\n")
	put(t, w.Path, "a.txt", "x\n")
	if c := b.commit("work", ""); !c.Changed {
		t.Errorf("got %+v", c)
	}
	b.change("a.txt", "y\n")
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || !r.Conflict {
		t.Errorf("rebase: %+v, %v", r, err)
	}
	b.git("reset", "-q", "--hard", "HEAD~1")
	// The file .git may name any repository: steps do not read it.
	if err := os.Remove(filepath.Join(w.Path, ".git")); err != nil {
		t.Fatal(err)
	}
	put(t, w.Path, ".git", "gitdir: "+filepath.Join(b.repo, ".git")+"\n")
	put(t, w.Path, "a.txt", "x\n") // without the markers of the conflict
	put(t, w.Path, "b.txt", "x\n")
	if c := b.commit("more", ""); len(c.Files) != 1 || b.git("rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("got %+v", c)
	}
	put(t, w.Path, ".git", "gitdir: "+filepath.Join(filepath.Dir(w.Path), "git")+"\n")
	git(t, w.Path, "checkout", "-q", "-b", "elsewhere")
	_, err := b.s.Commit(t.Context(), "T-1", 0, "m", "")
	refused(t, err, abi.Conflict, "elsewhere", "sentinel/T-1")
	after := b.users()
	for _, seen := range []map[string]string{before, after} {
		for _, name := range []string{".git/ORIG_HEAD", ".git/index", ".git/COMMIT_EDITMSG"} {
			delete(seen, name) // of the commits of this test
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the user's repository was changed: %s", diff)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a program of the worktree was executed")
	}
}

// TestHostileRepositories plants a program in the places of a repository that git would run
// one from, then does every step.
func TestHostileRepositories(t *testing.T) {
	b := newBench(t)
	b.first()
	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("clone", "-q", "--bare", b.repo, remote)
	canary := filepath.Join(t.TempDir(), "canary")
	evil := filepath.Join(t.TempDir(), "evil.sh")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+canary+"\ncat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.change(".gitattributes", "* filter=evil merge=evil diff=evil\n")
	for _, repo := range []string{b.repo, remote} {
		for _, pair := range [][2]string{
			{"filter.evil.clean", evil}, {"filter.evil.smudge", evil}, {"filter.evil.process", evil}, {"merge.evil.driver", evil}, {"diff.evil.command", evil}, {"diff.evil.textconv", evil},
			{"core.fsmonitor", evil}, {"core.sshCommand", evil}, {"core.pager", evil}, {"core.editor", evil}, {"core.askPass", evil}, {"core.alternateRefsCommand", evil},
			{"credential.helper", "!" + evil}, {"uploadpack.packObjectsHook", evil}, {"gpg.program", evil}, {"commit.gpgSign", "true"}, {"push.gpgSign", "true"},
			{"remote.origin.uploadpack", evil}, {"remote.origin.receivepack", evil}, {"remote.origin.vcs", "ext"}, {"protocol.ext.allow", "always"},
			{"url.ext::" + evil + " .insteadOf", "/"}, {"receive.denyCurrentBranch", "updateInstead"}, {"gc.auto", "1"}, {"submodule.recurse", "true"},
			{"extensions.worktreeConfig", "true"},
		} {
			git(t, repo, "config", pair[0], pair[1])
		}
		hooks := filepath.Join(repo, "hooks")
		if repo == b.repo {
			hooks = filepath.Join(repo, ".git", "hooks")
		}
		for _, hook := range strings.Fields("post-checkout pre-commit commit-msg prepare-commit-msg post-commit pre-push pre-receive update post-receive post-update reference-transaction pre-rebase post-rewrite proc-receive push-to-checkout post-index-change pre-auto-gc fsmonitor-watchman") {
			if err := os.MkdirAll(hooks, 0o755); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(filepath.Join(hooks, hook))
			if err := os.Symlink(evil, filepath.Join(hooks, hook)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(t, b.repo, ".git/config", read(t, filepath.Join(b.repo, ".git", "config"))+"[remote \"origin\"]\n\turl = "+remote+"\n")
	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "work\n")
	if c := b.commit("work", ""); !c.Changed {
		t.Errorf("commit: %+v", c)
	}
	if _, err := b.s.Diff(t.Context(), "T-1", 0); err != nil {
		t.Error(err)
	}
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || r.Conflict {
		t.Errorf("rebase: %+v, %v", r, err)
	}
	if p, err := b.s.Push(t.Context(), "T-1", 0, ""); err != nil || !p.Pushed {
		t.Errorf("push: %+v, %v", p, err)
	}
	put(t, w.Path, "b.txt", "late\n")
	if r, err := b.s.Remove(t.Context(), "T-1", 0); err != nil || !r.Saved {
		t.Errorf("remove: %+v, %v", r, err)
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("a program of the repository was executed")
	}
	plain := exec.Command("git", "status")
	plain.Dir = b.repo
	_ = plain.Run()
	if _, err := os.Stat(canary); err != nil {
		t.Error("plain git does not execute it either: this test shows nothing")
	}
}

func TestHostileNames(t *testing.T) {
	b := newBench(t)
	b.first()
	for _, branch := range []string{"-x", "--upload-pack=x", "a..b", "a b", "refs/../x", "x.lock", "x/", "/x", "HEAD", "a@{1}", "x\n", "a:b", "a^", "../../x", ".x", "a/.b", "a.lock/b", strings.Repeat("x", 300)} {
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Branch: branch})
		refused(t, err, abi.BadFields, "branch")
		_, err = b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Base: branch})
		refused(t, err, abi.BadFields, "base")
	}
	for _, repo := range []string{"ext::sh -c x", "http://x/y", "git://x/y", "https://u:p@x/y", "relative", "-x", "x\x00y", "fd::1", "file://host/x", "ssh://-oProxyCommand=x/y"} {
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Repo: repo})
		refused(t, err, abi.BadFields, "repo")
	}
	b.add(worktree.Add{})
	for _, remote := range []string{"-x", "https://x/y", "a b", "../x", b.repo} {
		_, err := b.s.Push(t.Context(), "T-1", 0, remote)
		refused(t, err, abi.BadFields, "remote")
	}
	for _, message := range []string{"", " \n", "a\x00b", strings.Repeat("x", 20<<10)} {
		_, err := b.s.Commit(t.Context(), "T-1", 0, message, "")
		refused(t, err, abi.BadFields, "message")
	}
	// Ids come from other trackers. Each has a folder of its own below that of worktrees.
	for i, id := range []string{"..", "../../x", "a/b", "a..b", "x.lock", "-x", "a b", "é", "x\ny", strings.Repeat("i", 300), "refs/heads/main"} {
		b.claim(id, 1)
		w, err := b.s.Add(t.Context(), worktree.Add{Ticket: id})
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		if rel, err := filepath.Rel(filepath.Join(b.dir, "trees"), w.Path); err != nil || strings.Count(rel, string(filepath.Separator)) != 1 || strings.HasPrefix(rel, ".") {
			t.Errorf("%q is in %s", id, w.Path)
		}
		if list, err := b.s.List(); err != nil || len(list) != i+2 {
			t.Errorf("%q: %d worktrees, %v", id, len(list), err)
		}
	}
}

// A caller that is bound to the ticket takes neither another repository or branch than the ticket
// has, nor the branch that would keep all other tickets from having one.
func TestWorktreeIsOfItsTicket(t *testing.T) {
	b := newBench(t)
	b.first()
	ticket := b.tickets["T-1"]
	ticket.Branch = "feature/x"
	b.tickets["T-1"] = ticket
	b.claim("T-2", 1)
	other := filepath.Join(t.TempDir(), "other")
	for name, in := range map[string]worktree.Add{
		"another repository":     {Ticket: "T-1", Repo: other},
		"another branch":         {Ticket: "T-1", Branch: "main2"},
		"the folder of branches": {Ticket: "T-2", Branch: "sentinel"},
		"a folder of others":     {Ticket: "T-2", Branch: "release"},
	} {
		in.Bound = true
		if _, err := b.s.Add(t.Context(), in); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-2", Branch: "work/release", Bound: true}); err != nil || got.Branch != "work/release" {
		t.Errorf("one for agents: %+v %v", got, err)
	}
	if got, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Repo: b.repo, Branch: "feature/x", Bound: true}); err != nil || got.Branch != "feature/x" {
		t.Errorf("those of the ticket: %+v %v", got, err)
	}
}
