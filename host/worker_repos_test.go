package host_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
)

// manyFiles is the number of files of a large repository, and in the long form what
// SENTINEL_BENCH_FILES says.
func manyFiles() int {
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_BENCH_FILES")); err == nil && !testing.Short() {
		return n
	}
	return 2_000
}

// Each odd repository either is worked on as any other, or ends its ticket in a named state
// with a reason that says what is wrong, and the ticket behind it is done. The repositories
// of the users are as they were.
func TestSpecWorkerBadRepositories(t *testing.T) {
	ws, git := project(t)
	in := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	repo := func(name string) string {
		dir := filepath.Join(t.TempDir(), name)
		in(t.TempDir(), "clone", "-q", "--no-hardlinks", ws, dir)
		in(dir, "remote", "remove", "origin")
		return dir
	}
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type want struct{ state, reason string }
	cases := map[string]struct {
		make func(dir string)
		want
	}{
		"missing": {func(dir string) { must0(t, os.RemoveAll(dir)) }, want{"ready", "no such file or directory"}},
		"no-git":  {func(dir string) { must0(t, os.RemoveAll(filepath.Join(dir, ".git"))) }, want{"on_hold", "is not a git repository"}},
		"no-commits": {func(dir string) {
			must0(t, os.RemoveAll(filepath.Join(dir, ".git")))
			in(dir, "init", "-q", "-b", "main")
		}, want{"on_hold", "has no commits"}},
		"detached":   {func(dir string) { in(dir, "checkout", "-q", "--detach") }, want{"on_hold", "is on no branch: name the base"}},
		"branch":     {func(dir string) { in(dir, "branch", "sentinel/branch-1") }, want{"on_hold", "branch sentinel/branch-1 exists in"}},
		"branch-dir": {func(dir string) { in(dir, "branch", "sentinel") }, want{"on_hold", "a branch is named as a folder of it"}},
		"broken":     {func(dir string) { must0(t, os.RemoveAll(filepath.Join(dir, ".git", "objects"))) }, want{"on_hold", "is not a git repository"}},
		"damaged": {func(dir string) {
			must0(t, filepath.WalkDir(filepath.Join(dir, ".git", "objects"), func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					_ = os.Chmod(path, 0o600)
					err = os.WriteFile(path, []byte("rubbish"), 0o600)
				}
				return err
			}))
		}, want{"on_hold", "the repository is damaged"}},
		"dirty": {func(dir string) {
			put(filepath.Join(dir, "a.txt"), "mine, not committed\n")
			put(filepath.Join(dir, "staged.txt"), "staged\n")
			in(dir, "add", "staged.txt")
			put(filepath.Join(dir, "untracked.txt"), "untracked\n")
		}, want{"done", ""}},
		"merging": {func(dir string) {
			in(dir, "checkout", "-q", "-b", "other")
			put(filepath.Join(dir, "a.txt"), "theirs\n")
			in(dir, "commit", "-qam", "theirs")
			in(dir, "checkout", "-q", "main")
			put(filepath.Join(dir, "a.txt"), "ours\n")
			in(dir, "commit", "-qam", "ours")
			_ = exec.Command("git", "-C", dir, "merge", "other").Run() // a conflict
		}, want{"done", ""}},
		"submodules": {func(dir string) {
			lib := filepath.Join(t.TempDir(), "lib")
			in(t.TempDir(), "clone", "-q", ws, lib)
			in(dir, "submodule", "--quiet", "add", "--", lib, "vendor/lib")
			in(dir, "commit", "-q", "-m", "submodule")
		}, want{"done", ""}},
		"many-files": {func(dir string) {
			for i := range manyFiles() {
				put(filepath.Join(dir, fmt.Sprintf("d%d/e%d/f%d.go", i/1000, i/30%30, i)), fmt.Sprintf("package e%d\n\n// F%d is one of many.\nfunc F%d() {}\n", i/30%30, i, i))
			}
			in(dir, "add", ".")
			in(dir, "commit", "-q", "-m", "many")
		}, want{"done", ""}},
	}
	// Of each end one case: no folder, no repository, a branch that is in the way, damage, and work on an unusual tree.
	inShort(t, cases, "missing", "no-git", "branch-dir", "damaged", "merging")
	newModelServer(t, func(r chatRequest) answer {
		if a, ok := forSecond(r); ok {
			return a
		}
		switch r.answers() {
		case 0:
			return answer{tool: "code_search", args: map[string]any{"pattern": "one of many"}}
		case 1:
			return fileOf("a.txt", "green\n")
		}
		return answer{text: "done"}
	})
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: withoutReview})
	began := time.Now()
	priority := len(cases)
	for name, c := range cases {
		dir := repo(name)
		c.make(dir)
		before := snapshotOf(t, dir)
		t.Logf("%s is made after %s", name, time.Since(began).Round(time.Millisecond))
		priority--
		must(t, h, "ticket/create", map[string]any{"id": name + "-1", "title": "Make it green", "priority": priority, "repo_url": dir, "acceptance_criteria": map[string]any{"checks": []any{
			map[string]any{"id": "green", "type": "code_pattern", "verify": map[string]any{"file": "a.txt", "pattern": "green", "should_match": true}},
		}}}, nil)
		t.Cleanup(func() {
			if diff := cmp.Diff(before, snapshotOf(t, dir)); diff != "" {
				t.Errorf("%s: the user's tree was changed (-before +after):\n%s", name, diff)
			}
		})
	}
	must(t, h, "ticket/create", fmt.Sprintf(secondOf, "good"), nil)
	began = time.Now()
	f := forge(t, h, ws)
	t.Logf("worked for %s on %d tickets", time.Since(began).Round(time.Millisecond), len(f.Worked))
	for name, c := range cases {
		got := ticketOf(t, h, name+"-1").Ticket
		if got.State != c.state || !strings.Contains(got.Error+got.HoldReason, c.reason) || len(got.Error) > 2000 {
			t.Errorf("%s: %s, want %s: %q %q", name, got.State, c.state, got.HoldReason, got.Error)
		}
	}
	if got := ticketOf(t, h, "good-2").Ticket; got.State != "done" || git("show", "sentinel/good-2:second-good.txt") != "second" {
		t.Errorf("the ticket behind them: %+v", got)
	}
}

func must0(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshotOf has the files of a user's tree with their content, its index and its current
// branch. Refs and objects are where a worker adds its branch.
func snapshotOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return nil // the folder is missing
		case d.IsDir() && (rel == ".git/objects" || rel == ".git/refs" || rel == ".git/logs"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		files[rel] = fmt.Sprintf("%x %v", sum[:6], err)
		return nil
	})
	return files
}

// A disk that cannot be written keeps the ticket with the reason and ends nothing else: of
// the repository, where only the branch is made, and of the folder of worktrees.
func TestSpecWorkerReadOnlyDisk(t *testing.T) {
	for name, c := range map[string]struct {
		asRoot bool // does not depend on modes
		lock   func(t *testing.T, ws, cache string)
		reason string
	}{
		"repository": {false, func(t *testing.T, ws, _ string) { readOnly(t, filepath.Join(ws, ".git")) }, "cannot be written, so branch sentinel/locked-1 is not made"},
		"worktrees":  {false, func(t *testing.T, _, cache string) { readOnly(t, cache) }, "permission denied"},
		"no folder": {true, func(t *testing.T, _, cache string) {
			must0(t, os.MkdirAll(filepath.Join(cache, "sentinel"), 0o755))
			must0(t, os.WriteFile(filepath.Join(cache, "sentinel", "worktrees"), nil, 0o600))
		}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.asRoot && os.Geteuid() == 0 {
				t.Skip("modes do not bind root")
			}
			ws, git := project(t)
			second, _ := project(t)
			cache := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", cache)
			newModelServer(t, greenOrSecond)
			h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: withoutReview})
			c.lock(t, ws, cache)
			must(t, h, "ticket/create", fmt.Sprintf(firstOf, "locked"), nil)
			other := map[string]any{}
			must0(t, json.Unmarshal(fmt.Appendf(nil, secondOf, "locked"), &other))
			other["repo_url"] = second
			must(t, h, "ticket/create", other, nil)
			workerResult(t, h, startShipped(t, h, ws, "forge-worker", nil))
			got := ticketOf(t, h, "locked-1").Ticket
			if got.State != "ready" && got.State != "on_hold" || !strings.Contains(got.Error, c.reason) || got.RetryAfter == nil && got.State == "ready" {
				t.Errorf("%s: %q %q", got.State, got.HoldReason, got.Error)
			}
			if next := ticketOf(t, h, "locked-2").Ticket; name == "repository" && next.State != "done" || next.State == "in_progress" {
				t.Errorf("the ticket of another repository: %+v", next)
			}
			if git("show", "main:a.txt") != "one" {
				t.Error("the branch of the user was changed")
			}
		})
	}
}

// readOnly takes the right to write from all that is below a folder, until the test ends.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	set := func(write os.FileMode) {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.Type().IsRegular() && !d.IsDir() {
				return nil
			}
			if info, err := os.Stat(path); err == nil {
				_ = os.Chmod(path, info.Mode().Perm()&^0o222|write)
			}
			return nil
		})
	}
	set(0)
	t.Cleanup(func() { set(0o200) })
}
