package codeindex_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/internal/codeindex"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
)

// put writes files below a folder.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// git runs git in a folder, without the configuration of the machine.
func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func gitProgram(t testing.TB) string {
	t.Helper()
	program := gitexec.LookPath()
	if program == "" {
		t.Skip("git is not installed")
	}
	return program
}

// options are those of a workspace with its databases elsewhere.
func options(t testing.TB, dir string) codeindex.Options {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return codeindex.Options{
		Root: root, Dir: filepath.Join(t.TempDir(), "index"), Git: gitexec.LookPath(),
		Skip: func(name string, _ bool) bool { return strings.HasSuffix(name, ".pem") || name == "vendor" },
		Accept: func(_ string, data []byte) bool {
			return !bytes.Contains(data, []byte("PRIVATE KEY")) && bytes.IndexByte(data, 0) < 0
		},
	}
}

// find refreshes an index of its own and returns the files with a word.
func find(t testing.TB, opt codeindex.Options, word string) []string {
	t.Helper()
	x, err := codeindex.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, _, err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return having(t, x, word)
}

func having(t testing.TB, x *codeindex.Index, word string) []string {
	t.Helper()
	r, err := x.Search(t.Context(), []string{word})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range r.Texts {
		if f.Words != 0 {
			names = append(names, f.Path)
		}
	}
	if len(names) != r.Counts[0] {
		t.Fatalf("%d files have %q, the count is %d", len(names), word, r.Counts[0])
	}
	return names
}

func expect(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// TestSaves changes files in all ways between two refreshes of one database.
func TestSaves(t *testing.T) {
	for _, name := range []string{"git", "walk"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			opt := options(t, dir)
			if name == "git" {
				gitProgram(t)
				git(t, dir, "init", "--quiet")
			} else {
				opt.Git = ""
			}
			put(t, dir, map[string]string{"a.go": "alpha needle", "b/c.go": "beta", ".gitignore": "*.log\n", "x.log": "needle", "vendor/v.go": "needle"})
			expect(t, "without commits", find(t, opt, "needle"), "a.go")
			if name == "git" {
				git(t, dir, "add", ".")
				git(t, dir, "commit", "--quiet", "-m", "first")
			}
			expect(t, "unchanged", find(t, opt, "needle"), "a.go")
			put(t, dir, map[string]string{"b/c.go": "beta needle", "d.go": "needle"})
			expect(t, "dirty tree: changed and new", find(t, opt, "needle"), "a.go", "b/c.go", "d.go")
			put(t, dir, map[string]string{"d.go": "nothing"})
			expect(t, "word removed", find(t, opt, "needle"), "a.go", "b/c.go")
			if err := os.Rename(filepath.Join(dir, "a.go"), filepath.Join(dir, "b", "z.go")); err != nil {
				t.Fatal(err)
			}
			expect(t, "renamed", find(t, opt, "needle"), "b/c.go", "b/z.go")
			if err := os.Remove(filepath.Join(dir, "b", "c.go")); err != nil {
				t.Fatal(err)
			}
			expect(t, "deleted", find(t, opt, "needle"), "b/z.go")
			put(t, dir, map[string]string{".gitignore": "b/\n"})
			if name == "walk" {
				expect(t, "ignored", find(t, opt, "needle"), "x.log")
			} else {
				// A tracked file is not ignored; b/z.go is not tracked.
				expect(t, "ignored", find(t, opt, "needle"), "x.log")
			}
			expect(t, "the removed word of a file", find(t, opt, "alpha"))
		})
	}
}

// TestRacySave changes a file many times with the same size, within the resolution of
// the times of file systems, and sets its time back.
func TestRacySave(t *testing.T) {
	dir := t.TempDir()
	opt := options(t, dir)
	at := filepath.Join(dir, "a.txt")
	when := time.Now().Add(-time.Second)
	for i := range 50 {
		word := fmt.Sprintf("word%04d", i)
		if err := os.WriteFile(at, []byte(word), 0o644); err != nil { // in place: the same inode
			t.Fatal(err)
		}
		if err := os.Chtimes(at, when, when); err != nil {
			t.Fatal(err)
		}
		expect(t, word, find(t, opt, word), "a.txt")
		if i > 0 {
			expect(t, "the word before", find(t, opt, fmt.Sprintf("word%04d", i-1)))
		}
	}
}

// TestOldTimeIsNoProof replaces a file by one of the same size and an old time, which
// its inode and the time of the change of its inode give away.
func TestOldTimeIsNoProof(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("only Linux has the time of the change of an inode here")
	}
	dir := t.TempDir()
	opt := options(t, dir)
	old := time.Now().Add(-time.Hour)
	put(t, dir, map[string]string{"a.txt": "before"})
	if err := os.Chtimes(filepath.Join(dir, "a.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	expect(t, "first", find(t, opt, "before"), "a.txt")
	put(t, dir, map[string]string{"b.txt": "behind"})
	if err := os.Chtimes(filepath.Join(dir, "b.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "b.txt"), filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	expect(t, "second", find(t, opt, "behind"), "a.txt")
	expect(t, "the text before", find(t, opt, "before"))
}

// TestSubmodules has a submodule, one that is not checked out, a repository that is no
// submodule, and a tracked folder that a link has replaced.
func TestSubmodules(t *testing.T) {
	gitProgram(t)
	inner := t.TempDir()
	git(t, inner, "init", "--quiet")
	put(t, inner, map[string]string{"lib/in.go": "needle", ".gitignore": "out/\n"})
	git(t, inner, "add", ".")
	git(t, inner, "commit", "--quiet", "-m", "first")
	dir := t.TempDir()
	git(t, dir, "init", "--quiet")
	git(t, dir, "submodule", "--quiet", "add", inner, "sub")
	git(t, dir, "submodule", "--quiet", "add", inner, "absent")
	put(t, dir, map[string]string{"main.go": "needle", "gone/x.go": "needle", "secret/key.pem": "needle"})
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "first")
	git(t, dir, "submodule", "--quiet", "deinit", "absent")
	put(t, dir, map[string]string{"sub/out/o.go": "needle", "sub/dirty.go": "needle", "own/repo.go": "needle"})
	git(t, filepath.Join(dir, "own"), "init", "--quiet")
	if err := os.RemoveAll(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(inner, "lib"), filepath.Join(dir, "linked")); err != nil {
		t.Skipf("this system has no links: %v", err)
	}
	if err := os.Symlink("secret", filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"secret/x.go": "needle"})
	expect(t, "submodules", find(t, options(t, dir), "needle"), "main.go", "own/repo.go", "secret/x.go", "sub/dirty.go", "sub/lib/in.go")
	// A folder of a work tree that its repository ignores is a workspace like any other.
	put(t, dir, map[string]string{".gitignore": "/sub/\n", "ignored/a.go": "needle"})
	put(t, dir, map[string]string{".gitignore": "/ignored/\n"})
	expect(t, "ignored folder as workspace", find(t, options(t, filepath.Join(dir, "ignored")), "needle"), "a.go")
}

// TestFollowsNoLinkThatReplacesAFolder: a program that puts a link in the place of a folder, while the files are listed or
// read, has the index list and read nothing of where the link leads.
func TestFollowsNoLinkThatReplacesAFolder(t *testing.T) {
	gitProgram(t)
	for _, when := range []string{"listed", "read"} {
		for _, to := range []string{"vendor", "outside"} {
			t.Run(when+" "+to, func(t *testing.T) {
				dir := t.TempDir()
				link, target := to, filepath.Join(dir, to)
				if to == "outside" {
					target = t.TempDir()
					link = target
				}
				put(t, target, map[string]string{"b/secret.txt": "needle"})
				put(t, dir, map[string]string{"a.txt": "first", "d/b/secret.txt": "mine"})
				git(t, dir, "init", "--quiet")
				git(t, dir, "add", "a.txt", "d")
				if when == "listed" { // git still lists it
					if err := os.Remove(filepath.Join(dir, "d/b/secret.txt")); err != nil {
						t.Fatal(err)
					}
				}
				swap := sync.OnceFunc(func() {
					if err := os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "away")); err != nil {
						t.Error(err)
					}
					if err := os.Symlink(link, filepath.Join(dir, "d")); err != nil {
						t.Error(err)
					}
				})
				opt := options(t, dir)
				skip, accept := opt.Skip, opt.Accept
				opt.Skip = func(name string, folder bool) bool {
					if when == "listed" && name == "d/b/secret.txt" { // the folder was looked at
						swap()
					}
					return skip(name, folder)
				}
				opt.Accept = func(name string, data []byte) bool {
					if when == "read" && name == "a.txt" {
						swap()
					}
					return accept(name, data)
				}
				x, err := codeindex.Open(t.Context(), opt)
				if err != nil {
					t.Fatal(err)
				}
				defer x.Close()
				files, _, err := x.Refresh(t.Context())
				if err != nil || when == "listed" && slices.Contains(files, "d/b/secret.txt") {
					t.Errorf("%q %v", files, err)
				}
				expect(t, "words", having(t, x, "needle"))
			})
		}
	}
}

// TestLeftOut has files whose text must not be found.
func TestLeftOut(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"a.txt": "needle", "key.pem": "needle", "key": "-----BEGIN PRIVATE KEY-----\nneedle", "b.bin": "\x00needle",
		"large.txt": "needle" + strings.Repeat(" ", codeindex.MaxFile), "full.txt": "needle" + strings.Repeat(" ", codeindex.MaxFile-6),
	})
	opt := options(t, dir)
	expect(t, "left out", find(t, opt, "needle"), "a.txt", "full.txt")
	put(t, dir, map[string]string{"a.txt": "-----BEGIN PRIVATE KEY-----\nneedle"})
	expect(t, "became a secret", find(t, opt, "needle"), "full.txt")
	for _, name := range databases(t, opt.Dir) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("PRIVATE")) {
			t.Errorf("%s has the text of a secret", name)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}

func databases(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no databases in %s: %v", dir, err)
	}
	return names
}

// TestWords finds names by their parts, and words by their beginning.
func TestWords(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"a": "getUserName()", "b": "MAX_BLOCK_size", "c": "parseHTTPRequest", "d": "Überprüfung größe", "e": "x\xffbroken\xfe", "f": "__init__ v2Engine", "g": strings.Repeat("q", 65),
	})
	opt := options(t, dir)
	for word, want := range map[string][]string{
		"user": {"a"}, "getusername": {"a"}, "USERNAME": {"a"}, "name": {"a"}, "block": {"b"}, "max_block": {"b"}, "size": {"b"}, "http": {"c"}, "request": {"c"}, "parse": {"c"},
		"überprüfung": {"d"}, "größe": {"d"}, "broken": {"e"}, "init": {"f"}, "__init": {"f"}, "engine": {"f"}, "qqq": nil, "ser": nil, "na": nil, "": nil, "user name": {"a"}, "user block": nil,
	} {
		expect(t, word, find(t, opt, word), want...)
	}
}

// TestDamage damages the database in several ways. The index is built again, and says so.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("f%03d.txt", i)] = fmt.Sprintf("needle%d some words", i)
	}
	put(t, dir, files)
	for name, damage := range map[string]func(data []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"garbage":   func([]byte) []byte { return bytes.Repeat([]byte("garbage "), 1000) },
		"truncated": func(data []byte) []byte { return data[:len(data)/2] },
		"zeroes":    func(data []byte) []byte { clear(data[len(data)/4:]); return data },
		"version":   func(data []byte) []byte { data[63]++; return data },
	} {
		t.Run(name, func(t *testing.T) {
			opt := options(t, dir)
			var log bytes.Buffer
			opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
			expect(t, "before", find(t, opt, "needle77"), "f077.txt")
			for _, name := range databases(t, opt.Dir) {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, damage(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			expect(t, "damaged", find(t, opt, "needle77"), "f077.txt")
			if name != "empty" && !strings.Contains(log.String(), "damaged and is built again") {
				t.Errorf("log: %s", log.String())
			}
			log.Reset()
			expect(t, "again", find(t, opt, "needle78"), "f078.txt")
			if log.Len() > 0 {
				t.Errorf("it is damaged again: %s", log.String())
			}
		})
	}
}

// TestUnwritable has a folder for the databases that cannot be made.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.txt": "needle"})
	opt := options(t, dir)
	if err := os.WriteFile(opt.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
	expect(t, "in memory", find(t, opt, "needle"), "a.txt")
	if !strings.Contains(log.String(), "built in memory") {
		t.Errorf("log: %s", log.String())
	}
}

// TestMany refreshes and searches one database by several indexes at the same time,
// while files change.
func TestMany(t *testing.T) {
	dir := t.TempDir()
	opt := options(t, dir)
	for i := range 100 {
		put(t, dir, map[string]string{fmt.Sprintf("f%d.txt", i): "common"})
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 10 {
				word := fmt.Sprintf("word%dx%d", n, i)
				name := fmt.Sprintf("own%d.txt", n)
				if err := os.WriteFile(filepath.Join(dir, name), []byte(word), 0o644); err != nil {
					t.Error(err)
					return
				}
				x, err := codeindex.Open(t.Context(), opt)
				if err != nil {
					t.Error(err)
					return
				}
				if _, _, err := x.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
				r, err := x.Search(t.Context(), []string{word, "common"})
				if err != nil || r.Counts[0] != 1 || r.Counts[1] != 100 {
					t.Errorf("%s: %v, %v", word, r.Counts, err)
				}
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestEqualStateEqualResult compares an index with a history of changes with a new one.
func TestEqualStateEqualResult(t *testing.T) {
	dir := t.TempDir()
	opt := options(t, dir)
	for round := range 5 {
		for i := range 40 {
			put(t, dir, map[string]string{fmt.Sprintf("d%d/f%d.txt", i%3, i): fmt.Sprintf("common word%d", (i+round)%7)})
		}
		find(t, opt, "common")
	}
	search := func(opt codeindex.Options) codeindex.Result {
		x, err := codeindex.Open(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if _, _, err := x.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := x.Search(t.Context(), []string{"word1", "word2", "none", "common"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	fresh := opt
	fresh.Dir = ""
	if diff := cmp.Diff(search(fresh), search(opt)); diff != "" {
		t.Error(diff)
	}
}

// TestCancel cancels a refresh. The next one is complete.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.txt": "needle", "b.txt": "needle"})
	opt := options(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	accept := opt.Accept
	opt.Accept = func(name string, data []byte) bool { cancel(); return accept(name, data) }
	x, err := codeindex.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, _, err := x.Refresh(ctx); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Fatalf("cancelled: %v", err)
	}
	if _, _, err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "after", having(t, x, "needle"), "a.txt", "b.txt")
}

// TestKilled kills processes that build and change an index. The next one finds all, and
// nothing is damaged.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("CODEINDEX_WORKSPACE"); dir != "" {
		opt := options(t, dir)
		opt.Dir = os.Getenv("CODEINDEX_DIR")
		for i := 0; ; i++ { // until it is killed
			for n := range 20 {
				put(t, dir, map[string]string{fmt.Sprintf("own%d.txt", n): fmt.Sprintf("own word%d", i)})
			}
			find(t, opt, "own")
		}
	}
	dir := t.TempDir()
	opt := options(t, dir)
	var log bytes.Buffer
	opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
	for i := range 300 {
		put(t, dir, map[string]string{fmt.Sprintf("f%d.txt", i): strings.Repeat(fmt.Sprintf("common word%d ", i), 50)})
	}
	for round := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "CODEINDEX_WORKSPACE="+dir, "CODEINDEX_DIR="+opt.Dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+17*round) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the process ended by itself")
		}
		if got := find(t, opt, "common"); len(got) != 300 {
			t.Fatalf("round %d: %d files", round, len(got))
		}
		fresh := opt
		fresh.Dir = ""
		if diff := cmp.Diff(find(t, fresh, "own"), find(t, opt, "own")); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}
}

// TestDeepFolders has a file below more folders than are listed.
func TestDeepFolders(t *testing.T) {
	for _, program := range []string{gitexec.LookPath(), ""} {
		dir := t.TempDir()
		if program != "" {
			git(t, dir, "init", "--quiet")
		}
		put(t, dir, map[string]string{strings.Repeat("d/", 31) + "a.txt": "needle", strings.Repeat("d/", 32) + "b.txt": "needle"})
		opt := options(t, dir)
		opt.Git = program
		x, err := codeindex.Open(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		paths, complete, err := x.Refresh(t.Context())
		if err != nil || complete || len(paths) != 1 {
			t.Errorf("git %q: %d files, complete %t, %v", program, len(paths), complete, err)
		}
	}
}

// TestUnusedDatabasesAreRemoved opens more workspaces than a folder keeps.
func TestUnusedDatabasesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.txt": "needle"})
	opt := options(t, dir)
	for i := range 70 {
		opt.Policy = fmt.Sprint(i)
		find(t, opt, "needle")
	}
	names := slices.DeleteFunc(databases(t, opt.Dir), func(name string) bool { return filepath.Ext(name) != ".db" })
	if len(names) != 64 {
		t.Errorf("%d databases", len(names))
	}
}

// FuzzQuery searches for any text: a model writes it.
func FuzzQuery(f *testing.F) {
	for _, text := range []string{`"`, `""`, `a" OR "b`, `needle*`, `text:needle`, `{text}: needle`, `NEAR(needle alpha, 2)`, `^needle`, `needle AND NOT alpha`, `-needle`, "nee\x00dle", `'; DROP TABLE words; --`, "\xff\xfe", "Ⱥ", "((((", "İstanbul", "＂needle＂"} {
		f.Add(text)
	}
	dir := f.TempDir()
	put(f, dir, map[string]string{"a.txt": "alpha needle", "b.txt": "alpha"})
	opt := options(f, dir)
	opt.Dir = ""
	x, err := codeindex.Open(f.Context(), opt)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		r, err := x.Search(t.Context(), []string{text, "needle"})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(r.Texts) != 2 || r.Counts[1] != 1 {
			t.Fatalf("%q: %+v", text, r)
		}
		// Only letters and digits find something.
		if r.Counts[0] > 0 && !strings.ContainsFunc(text, func(c rune) bool { return strings.ContainsRune("aAnN", c) }) {
			t.Fatalf("%q is found: %+v", text, r)
		}
	})
}

// TestBranches checks out another branch: the index has its files and words, and no others.
func TestBranches(t *testing.T) {
	gitProgram(t)
	dir := t.TempDir()
	opt := options(t, dir)
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	put(t, dir, map[string]string{"both.txt": "first", "main.txt": "first", "moved/a.txt": "same"})
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "main")
	expect(t, "main", find(t, opt, "first"), "both.txt", "main.txt")
	git(t, dir, "checkout", "--quiet", "-b", "other")
	git(t, dir, "rm", "--quiet", "main.txt")
	git(t, dir, "mv", "moved", "there")
	put(t, dir, map[string]string{"both.txt": "other", "other.txt": "other"})
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "other")
	for range 2 {
		git(t, dir, "checkout", "--quiet", "main")
		expect(t, "first on main", find(t, opt, "first"), "both.txt", "main.txt")
		expect(t, "other on main", find(t, opt, "other"))
		expect(t, "same on main", find(t, opt, "same"), "moved/a.txt")
		git(t, dir, "checkout", "--quiet", "other")
		expect(t, "first on other", find(t, opt, "first"))
		expect(t, "other on other", find(t, opt, "other"), "both.txt", "other.txt")
		expect(t, "same on other", find(t, opt, "same"), "there/a.txt")
	}
}

// TestExcludesOfTheUser has files that .git/info/exclude and core.excludesFile of the user
// ignore. Rules that change count at the next refresh.
func TestExcludesOfTheUser(t *testing.T) {
	gitProgram(t)
	dir, home := t.TempDir(), t.TempDir()
	opt := options(t, dir)
	put(t, home, map[string]string{
		"config": "[core]\n\texcludesFile = " + filepath.ToSlash(filepath.Join(home, "ignored")) + "\n", "ignored": "*.mine\n",
	})
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "config"))
	git(t, dir, "init", "--quiet")
	put(t, dir, map[string]string{".git/info/exclude": "/scratch/\n", "a.txt": "needle", "b.mine": "needle", "scratch/c.txt": "needle", "sub/scratch/d.txt": "needle"})
	expect(t, "with both rules", find(t, opt, "needle"), "a.txt", "sub/scratch/d.txt")
	put(t, dir, map[string]string{".git/info/exclude": ""})
	expect(t, "without .git/info/exclude", find(t, opt, "needle"), "a.txt", "scratch/c.txt", "sub/scratch/d.txt")
	put(t, home, map[string]string{"ignored": "d.txt\n"})
	expect(t, "with another core.excludesFile", find(t, opt, "needle"), "a.txt", "b.mine", "scratch/c.txt")
}

// TestProcesses has processes that build and change one index at the same time. Each finds
// what it has written, and the index in the end is that of a single process.
func TestProcesses(t *testing.T) {
	if dir := os.Getenv("CODEINDEX_SHARED"); dir != "" {
		own := os.Getenv("CODEINDEX_OWN")
		opt := options(t, dir)
		opt.Dir = os.Getenv("CODEINDEX_DIR")
		opt.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)) // a damaged database would be built again
		for i := range 20 {
			word := fmt.Sprintf("%s%d", own, i)
			put(t, dir, map[string]string{own + ".txt": word, own + word + ".txt": "kept " + word})
			expect(t, word, find(t, opt, word), own+".txt", own+word+".txt")
		}
		return
	}
	dir := t.TempDir()
	opt := options(t, dir)
	for i := range 500 {
		put(t, dir, map[string]string{fmt.Sprintf("f%d.txt", i): fmt.Sprintf("common word%d", i)})
	}
	var all sync.WaitGroup
	for _, own := range []string{"one", "two", "three"} {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
			cmd.Env = append(os.Environ(), "CODEINDEX_SHARED="+dir, "CODEINDEX_DIR="+opt.Dir, "CODEINDEX_OWN="+own)
			if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("level=WARN")) {
				t.Errorf("%s: %v\n%s", own, err, out)
			}
		})
	}
	all.Wait()
	fresh := opt
	fresh.Dir = ""
	for word, count := range map[string]int{"kept": 60, "common": 500, "word77": 1, "two19": 2, "two18": 1} {
		got := find(t, opt, word)
		if len(got) != count {
			t.Errorf("%d files have %q, want %d", len(got), word, count)
		}
		expect(t, word, got, find(t, fresh, word)...)
	}
}
