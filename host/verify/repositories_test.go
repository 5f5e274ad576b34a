package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/verify"
)

func TestHostileRepositoriesAndBranches(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	marker := filepath.Join(t.TempDir(), "executed")
	v := verifier(t)
	file := criteria(t, `[{"type":"file","verify":{"path":"a"}}]`)
	for _, url := range []string{
		"ext::sh -c touch% " + marker, "--upload-pack=touch " + marker, "-oProxyCommand=touch " + marker, "ssh://-oProxyCommand=touch " + marker + "/x",
		"file://host/" + dir, "http://example.com/r", "https://user:pass@example.com/r", "https://token@example.com/r", "git://example.com/r", "relative/path", "a\nb", "::", "git@-oX:r",
	} {
		r := run(t, v, verify.Job{Criteria: file, RepoURL: url, Branch: "work", Approved: true})
		if r.Status != "blocked" || r.Blocked.Reason == verify.Infrastructure && !strings.HasPrefix(url, "git@") {
			t.Errorf("%q: %s %+v", url, r.Status, r.Blocked)
		}
		if strings.Contains(fmt.Sprint(r.Blocked), "pass@") || strings.Contains(r.Blocked.Message, "token@") {
			t.Errorf("%q: credentials are shown: %s", url, r.Blocked.Message)
		}
	}
	for _, branch := range []string{"--upload-pack=touch", "-x", "a..b", "HEAD@{1}", "a b", "x;touch y", "refs/../x", "a.lock", "$(touch y)", strings.Repeat("a", 300)} {
		r := run(t, v, verify.Job{Criteria: file, RepoURL: dir, Branch: branch, Approved: true})
		if r.Status != "blocked" || r.Blocked.Reason != verify.Refused {
			t.Errorf("%q: %s %+v", branch, r.Status, r.Blocked)
		}
	}
	// A repository whose hooks and settings name programs.
	git(t, dir, "config", "core.fsmonitor", "touch "+marker)
	git(t, dir, "config", "uploadpack.packObjectsHook", "touch "+marker)
	for _, hook := range []string{"post-checkout", "reference-transaction", "pre-receive"} {
		if err := os.WriteFile(filepath.Join(dir, ".git", "hooks", hook), []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, v, verify.Job{Criteria: file, RepoURL: dir, Branch: "work", Approved: true}); r.Status != "passing" {
		t.Errorf("%+v", r)
	}
	if tip, err := v.Tip(t.Context(), dir, "work"); err != nil || tip != git(t, dir, "rev-parse", "work") {
		t.Errorf("tip %q, %v", tip, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the repository was executed")
	}
}

// What a command writes into its clone is neither executed by the host nor followed out of it,
// in this verification and the next.
func TestPlantedInTheClone(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1", "b": "2"})
	v := verifier(t)
	out := t.TempDir()
	marker := filepath.Join(out, "executed")
	if err := os.WriteFile(filepath.Join(out, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	plant := `touch ` + marker + ` 2>/dev/null; git config core.fsmonitor "touch ` + marker + `"; git config core.hooksPath .git/hooks; git config filter.f.smudge "touch ` + marker + `; cat"
		mkdir -p .git/hooks .git/info && echo "* filter=f" >.git/info/attributes
		for hook in post-checkout post-index-change reference-transaction pre-auto-gc; do printf "#!/bin/sh\ntouch ` + marker + `\n" >.git/hooks/$hook; chmod +x .git/hooks/$hook; done
		echo ` + out + ` >.git/commondir; echo ` + out + ` >.git/objects/info/alternates
		ln -sf ` + out + `/secret a; rm b; mkdir b; ln -s ` + out + `/secret b/c; ln -s ` + out + ` d`
	checks, err := json.Marshal([]any{
		map[string]any{"type": "test", "verify": map[string]any{"command": plant}},
		map[string]any{"type": "pattern", "verify": map[string]any{"file": "a", "pattern": "secret"}},
		map[string]any{"type": "file", "verify": map[string]any{"path": "b/c", "contains": []string{"secret"}}},
		map[string]any{"type": "file", "verify": map[string]any{"path": "d/secret"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := run(t, v, verify.Job{Criteria: criteria(t, string(checks)), RepoURL: dir, Branch: "work", Approved: true})
		if len(r.Checks) != 4 || r.Checks[0].Status != "passed" || r.Checks[1].Status != "failed" || r.Checks[2].Status != "failed" || r.Checks[3].Status != "failed" {
			t.Errorf("%+v", r)
		}
		if entries, err := os.ReadDir(out); err != nil || len(entries) != 1 {
			t.Errorf("executed, or written outside: %v %v", entries, err)
		}
	}
}

// What a clone borrows is the host's own copy: links in the judged repository, also those that
// are put there while checks run, make nothing of the user readable.
func TestClonesBorrowFromTheHostOnly(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, "id"), []byte("PRIVATE KEY"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := repo(t, map[string]string{"a": "1"})
	objects := filepath.Join(dir, ".git", "objects")
	swap := func(verify.CheckResult) {
		if err := os.Rename(objects, objects+"2"); err != nil {
			return // with the first check
		}
		if err := os.Symlink(home, objects); err != nil {
			t.Error(err)
		}
	}
	read := `{"type":"test","verify":{"command":"cat ` + objects + `/id ` + home + `/id; git log -1; exit 1"}}`
	r := run(t, verifier(t), verify.Job{Criteria: criteria(t, `[{"type":"test","verify":{"command":"git log -1"}},`+read+`]`), RepoURL: dir, Branch: "work", Approved: true, OnCheck: swap})
	if len(r.Checks) != 2 || r.Checks[0].Status != "passed" || strings.Contains(r.Checks[1].Output, "PRIVATE") || !strings.Contains(r.Checks[1].Output, "commit ") {
		t.Errorf("%+v", r)
	}

	// A line break in a path is a line of the file that says what is borrowed.
	for _, url := range []string{"file://" + dir + "%0A" + home, "file://" + dir + "%0a" + home + "%0A/x"} {
		r := run(t, verifier(t), verify.Job{Criteria: criteria(t, "["+read+"]"), RepoURL: url, Branch: "work", Approved: true})
		if r.Status != "blocked" || r.Blocked.Reason != verify.Refused {
			t.Errorf("%q: %+v", url, r)
		}
	}
}

// What leads out of a repository of this machine gives its checks nothing of another one.
func TestRepositoriesLeadNowhere(t *testing.T) {
	other := repo(t, map[string]string{"secret": "PRIVATE"})
	commit := git(t, other, "rev-parse", "work")
	objects := filepath.Join(other, ".git", "objects")
	link := func(t *testing.T, target, path string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(path), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	verified := func(t *testing.T, dir string, read ...string) (verify.Result, string) {
		t.Helper()
		v := verifier(t, func(o *verify.Options) { o.Read = read })
		r := run(t, v, verify.Job{Criteria: criteria(t, `[{"type":"file","verify":{"path":"secret","contains":["PRIVATE"]}}]`), RepoURL: dir, Branch: "work"})
		_, err := v.Tip(t.Context(), dir, "work")
		return r, fmt.Sprint(err)
	}
	for name, plant := range map[string]func(t *testing.T, dir string){
		"alternates": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, ".git/objects/info/alternates"), "# a comment\n"+objects+"\n")
			write(t, filepath.Join(dir, ".git/refs/heads/work"), commit+"\n")
		},
		"alternates of alternates": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "between/info/alternates"), objects+"\n")
			write(t, filepath.Join(dir, ".git/objects/info/alternates"), "../../between\n")
			write(t, filepath.Join(dir, ".git/refs/heads/work"), commit+"\n")
		},
		"alternates by a link": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "list"), objects+"\n")
			link(t, filepath.Join(dir, "list"), filepath.Join(dir, ".git/objects/info/alternates"))
			write(t, filepath.Join(dir, ".git/refs/heads/work"), commit+"\n")
		},
		"objects": func(t *testing.T, dir string) {
			link(t, objects, filepath.Join(dir, ".git/objects"))
			write(t, filepath.Join(dir, ".git/refs/heads/work"), commit+"\n")
		},
		"a pack folder": func(t *testing.T, dir string) {
			link(t, filepath.Join(objects, "pack"), filepath.Join(dir, ".git/objects/pack"))
		},
		"references": func(t *testing.T, dir string) {
			link(t, filepath.Join(other, ".git/refs"), filepath.Join(dir, ".git/refs"))
		},
		"a reference": func(t *testing.T, dir string) {
			link(t, filepath.Join(other, ".git/refs/heads/work"), filepath.Join(dir, ".git/refs/heads/work"))
		},
		"LFS":  func(t *testing.T, dir string) { link(t, t.TempDir(), filepath.Join(dir, ".git/lfs")) },
		".git": func(t *testing.T, dir string) { link(t, filepath.Join(other, ".git"), filepath.Join(dir, ".git")) },
		"a file .git": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, ".git"), "gitdir: "+filepath.Join(other, ".git")+"\n")
		},
		"commondir": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, ".git/commondir"), filepath.Join(other, ".git")+"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repo(t, map[string]string{"a": "1"})
			plant(t, dir)
			r, tip := verified(t, dir)
			if r.Status != "blocked" || r.Blocked.Reason != verify.Refused || !strings.Contains(r.Blocked.Message, "is outside of it") || !strings.Contains(tip, "is outside of it") {
				t.Errorf("%+v %+v, tip: %s", r, r.Blocked, tip)
			}
		})
	}
	t.Run("allowed", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "shared")
		git(t, other, "clone", "-q", "--shared", "--branch", "work", ".", dir)
		if r, _ := verified(t, dir, other); r.Status != "passing" {
			t.Errorf("a folder of verify.read: %+v %+v", r, r.Blocked)
		}
		tree := filepath.Join(t.TempDir(), "tree")
		git(t, other, "worktree", "add", "-q", tree, "work")
		if r, _ := verified(t, tree); r.Status != "passing" {
			t.Errorf("a worktree: %+v %+v", r, r.Blocked)
		}
	})
}

// A repository that a reader of git's formats can take for another one than git does is refused, and its
// checks do not see the other one.
func TestRepositoriesAreReadAsGitReadsThem(t *testing.T) {
	other := repo(t, map[string]string{"secret": "PRIVATE"})
	commit, objects := git(t, other, "rev-parse", "work"), filepath.Join(other, ".git", "objects")
	git(t, other, "repack", "-a", "-q")
	packs := filepath.Join(objects, "pack")
	mkdir := func(t *testing.T, path string) {
		t.Helper()
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, path, text string) {
		t.Helper()
		mkdir(t, filepath.Dir(path))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// bare makes a git directory whose branch is the commit of the other repository.
	bare := func(t *testing.T, dir, alternates string) {
		t.Helper()
		write(t, filepath.Join(dir, "HEAD"), "ref: refs/heads/work\n")
		write(t, filepath.Join(dir, "refs/heads/work"), commit+"\n")
		write(t, filepath.Join(dir, "config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
		write(t, filepath.Join(dir, "objects/info/alternates"), alternates)
	}
	for name, plant := range map[string]func(t *testing.T, dir string) string{
		"quoted alternates": func(t *testing.T, dir string) string {
			bare(t, filepath.Join(dir, ".git"), `"`+objects+"\"\n")
			mkdir(t, filepath.Join(dir, ".git/objects", `"`+objects+`"`))
			return dir
		},
		"quoted alternates that are relative": func(t *testing.T, dir string) string {
			rel, err := filepath.Rel(filepath.Join(dir, "objects"), objects)
			if err != nil {
				t.Fatal(err)
			}
			bare(t, dir, `"`+rel+"\"\n")
			mkdir(t, filepath.Join(dir, "objects", `"`+rel+`"`))
			return dir
		},
		"a folder .git that is not a repository": func(t *testing.T, dir string) string {
			bare(t, dir, objects+"\n")
			write(t, filepath.Join(dir, ".git/note"), "x")
			return dir
		},
		"x for x.git": func(t *testing.T, dir string) string {
			bare(t, filepath.Join(dir, "x.git"), objects+"\n")
			mkdir(t, filepath.Join(dir, "x"))
			return filepath.Join(dir, "x")
		},
		"a long file .git": func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, ".git"), "gitdir: "+filepath.Join(other, ".git")+strings.Repeat("\n", 5000))
			return dir
		},
		"a file .git of two lines": func(t *testing.T, dir string) string {
			mkdir(t, filepath.Join(dir, "inner"))
			mkdir(t, filepath.Join(dir, "inner\n"))
			write(t, filepath.Join(dir, ".git"), "gitdir: inner\n"+strings.Repeat("/..", 30)+filepath.Join(other, ".git")+"\n")
			return dir
		},
		"a long commondir": func(t *testing.T, dir string) string {
			bare(t, filepath.Join(dir, ".git"), "")
			write(t, filepath.Join(dir, ".git/commondir"), filepath.Join(other, ".git")+strings.Repeat("\n", 5000))
			return dir
		},
		"a commondir of two lines": func(t *testing.T, dir string) string {
			bare(t, filepath.Join(dir, ".git"), "")
			mkdir(t, filepath.Join(dir, ".git/own"))
			mkdir(t, filepath.Join(dir, ".git/own\n"))
			write(t, filepath.Join(dir, ".git/commondir"), "own\n"+strings.Repeat("/..", 30)+filepath.Join(other, ".git")+"\n")
			return dir
		},
		"a commondir whose first line is not a folder": func(t *testing.T, dir string) string {
			bare(t, filepath.Join(dir, ".git"), "")
			mkdir(t, filepath.Join(dir, ".git/own\n"))
			write(t, filepath.Join(dir, ".git/commondir"), "own\n"+strings.Repeat("/..", 30)+filepath.Join(other, ".git")+"\n")
			return dir
		},
		"a commondir of a bare repository": func(t *testing.T, dir string) string {
			bare(t, dir, "")
			write(t, filepath.Join(dir, "commondir"), filepath.Join(other, ".git")+"\n")
			return dir
		},
		"six alternates in a row": func(t *testing.T, dir string) string {
			at := filepath.Join(dir, ".git")
			for i := range 6 {
				next := filepath.Join(dir, fmt.Sprint("a", i))
				if i == 5 {
					next = filepath.Join(other, ".git")
				}
				bare(t, at, filepath.Join(next, "objects")+"\n")
				at = next
			}
			return dir
		},
		"a link in alternates": func(t *testing.T, dir string) string {
			bare(t, filepath.Join(dir, ".git"), filepath.Join(dir, "own")+"\n")
			mkdir(t, filepath.Join(dir, "own"))
			prefix := git(t, other, "rev-parse", "work")[:2]
			if err := os.Symlink(filepath.Join(objects, prefix), filepath.Join(dir, "own", prefix)); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"a folder that cannot be listed": func(t *testing.T, dir string) string {
			at := filepath.Join(dir, ".git/objects")
			bare(t, filepath.Join(dir, ".git"), "")
			if err := errors.Join(os.Symlink(packs, filepath.Join(at, "pack")), os.Chmod(at, 0o311)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(at, 0o711) })
			return dir
		},
		"a link in a folder that a link leads to": func(t *testing.T, dir string) string {
			bare(t, filepath.Join(dir, ".git"), "")
			mkdir(t, filepath.Join(dir, "own"))
			at := filepath.Join(dir, ".git/objects")
			if err := errors.Join(os.RemoveAll(at), os.Symlink("../own", at), os.Symlink(packs, filepath.Join(dir, "own/pack"))); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, dir := verifier(t), plant(t, filepath.Join(t.TempDir(), "planted"))
			r := run(t, v, verify.Job{Criteria: criteria(t, `[{"type":"file","verify":{"path":"secret","contains":["PRIVATE"]}}]`), RepoURL: dir, Branch: "work"})
			if r.Status != "blocked" || r.Blocked.Reason != verify.Refused && r.Blocked.Reason != "not_found" {
				t.Errorf("%+v %+v", r, r.Blocked)
			}
			if tip, err := v.Tip(t.Context(), dir, "work"); err == nil {
				t.Errorf("tip %s", tip)
			}
		})
	}
	t.Run("allowed", func(t *testing.T) {
		allowed := map[string]string{"bare": filepath.Join(t.TempDir(), "bare"), "below .git": filepath.Join(other, ".git")}
		git(t, other, "clone", "-q", "--bare", ".", allowed["bare"])
		top := repo(t, map[string]string{"a": "1"})
		git(t, top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "-b", "work", other, "sub")
		allowed["submodule"] = filepath.Join(top, "sub")
		for name, dir := range allowed {
			r := run(t, verifier(t), verify.Job{Criteria: criteria(t, `[{"type":"file","verify":{"path":"secret"}}]`), RepoURL: dir, Branch: "work"})
			if r.Status != "passing" {
				t.Errorf("%s: %+v %+v", name, r, r.Blocked)
			}
		}
	})
}

// The size of a repository and of its files is bounded before checks have them: a small repository can have
// large files, and files without number.
func TestRepositoriesAreBounded(t *testing.T) {
	v := verifier(t, func(o *verify.Options) { o.MaxSize = 2 << 20 })
	refused := func(t *testing.T, dir string) {
		t.Helper()
		r := run(t, v, verify.Job{Criteria: criteria(t, `[{"type":"file","verify":{"path":"README.md"}}]`), RepoURL: dir, Branch: "work"})
		if r.Status != "blocked" || r.Blocked.Reason != verify.Refused || !strings.Contains(r.Blocked.Message, "worktrees.size") {
			t.Errorf("%+v %+v", r, r.Blocked)
		}
	}
	t.Run("a large file", func(t *testing.T) { refused(t, repo(t, map[string]string{"zeros": strings.Repeat("0", 3<<20)})) })
	t.Run("trees in trees", func(t *testing.T) {
		dir := repo(t, map[string]string{"a": "1"})
		in := func(stdin string, args ...string) string {
			t.Helper()
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(args, err)
			}
			return strings.TrimSpace(string(out))
		}
		tree := "100644 blob " + in("x", "hash-object", "-w", "--stdin")
		for range 9 { // a billion files
			var entries strings.Builder
			for i := range 10 {
				fmt.Fprintf(&entries, "%s\t%d\n", tree, i)
			}
			tree = "040000 tree " + in(entries.String(), "mktree")
		}
		commit := in("", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit-tree", "-m", "many", strings.Fields(tree)[2])
		git(t, dir, "update-ref", "refs/heads/work", commit)
		refused(t, dir)
	})
	t.Run("a large pack", func(t *testing.T) {
		files, random := map[string]string{}, rand.NewChaCha8([32]byte{})
		for i := range 120 {
			b := make([]byte, 30<<10)
			_, _ = random.Read(b) // never fails
			files[fmt.Sprint(i)] = string(b)
		}
		dir := repo(t, files)
		git(t, dir, "checkout", "-q", "work")
		git(t, dir, "rm", "-q", "-r", ".") // only the history has them
		commit(t, dir, map[string]string{"README.md": "small"})
		refused(t, dir)
	})
	t.Run("one that fits", func(t *testing.T) {
		if r, _ := one(t, v, repo(t, map[string]string{"a": "1"}), `{"type":"file","verify":{"path":"a"}}`); r.Status != "passing" {
			t.Errorf("%+v", r)
		}
	})
}

// git shows lines of the files that it cannot read: those of a repository of this machine are
// not shown, since a link may lead to any file. Pipes are refused before git waits for them.
func TestRepositoryFilesAreNotShown(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(secret, []byte("PRIVATE KEY\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := criteria(t, `[{"type":"file","verify":{"path":"a"}}]`)
	for _, name := range []string{"packed-refs", "shallow", "HEAD", "config"} {
		dir := repo(t, map[string]string{"a": "1"})
		path := filepath.Join(dir, ".git", name)
		_ = os.Remove(path)
		if err := os.Symlink(secret, path); err != nil {
			t.Fatal(err)
		}
		r := run(t, verifier(t), verify.Job{Criteria: file, RepoURL: dir, Branch: "work"})
		if text := fmt.Sprintf("%+v %+v", r, r.Blocked); strings.Contains(text, "PRIVATE") || name != "config" && r.Status != "blocked" {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// The tip of a branch is looked for where a verification clones it from.
func TestTipIsWhereVerificationsLook(t *testing.T) {
	dir, published := repo(t, map[string]string{"a": "1"}), repo(t, map[string]string{"a": "2"})
	git(t, dir, "branch", "x/refs/heads/none", "main") // git lists it for refs/heads/none too
	const remote = "https://127.0.0.1:1/o/r.git"
	v := verifier(t, func(o *verify.Options) {
		o.Published = func(repoURL, branch string) string {
			if repoURL == remote && branch == "work" {
				return published
			}
			return ""
		}
	})
	for _, c := range []struct{ url, branch, want string }{
		{dir, "work", git(t, dir, "rev-parse", "work")},
		{"file://" + dir, "work", git(t, dir, "rev-parse", "work")},
		{filepath.Join(dir, ".git"), "", git(t, dir, "rev-parse", "main")},
		{dir, "none", ""},
		{remote, "work", git(t, published, "rev-parse", "work")},
	} {
		if got, err := v.Tip(t.Context(), c.url, c.branch); err != nil || got != c.want {
			t.Errorf("%s %q: %q, %v, want %q", c.url, c.branch, got, err, c.want)
		}
	}
	for _, url := range []string{remote, filepath.Join(dir, "none")} {
		if got, err := v.Tip(t.Context(), url, "main"); err == nil {
			t.Errorf("%s: %q, want an error", url, got)
		}
	}
}

func TestCheckoutTouchesNothing(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	before := git(t, dir, "for-each-ref") + git(t, dir, "status", "--porcelain") + git(t, dir, "worktree", "list")
	v := verifier(t)
	r, _ := one(t, v, dir, `{"type":"test","verify":{"command":"echo x > a; git checkout -q -b other; git -c user.name=x -c user.email=x commit -qam change; chmod 000 .; mkdir -p $HOME/d/e; chmod 000 $HOME/d"}}`)
	if r.Commit != git(t, dir, "rev-parse", "work") {
		t.Errorf("commit %s", r.Commit)
	}
	if after := git(t, dir, "for-each-ref") + git(t, dir, "status", "--porcelain") + git(t, dir, "worktree", "list"); after != before {
		t.Errorf("the repository changed:\n%s\n%s", before, after)
	}
}
