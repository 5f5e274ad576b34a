package git_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/git"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// as is try for a caller.
func (b *bench) as(by command.By, opt git.Options, p params) (string, error) {
	b.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		b.t.Fatal(err)
	}
	reg, err := command.NewRegistry(git.Commands(opt)...)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := reg.Call(b.t.Context(), &command.Call{Command: "code/git", Params: text, By: by, Tools: []string{"code/git"}, Workspace: b.dir})
	return string(answer), err
}

// TestRepositoriesThatLeadToOthers: the author of a folder decides what its .git leads to, so agents and
// models get nothing of another repository, and change none. The person and their steps may do so.
func TestRepositoriesThatLeadToOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a user may have no right to make symbolic links on Windows")
	}
	b := newBench(t)
	b.repo()
	b.put("b.txt", "text")
	b.raw(b.dir, "add", ".")
	b.raw(b.dir, "commit", "-q", "-m", "PRIVATE")
	other := b.dir
	commit := b.raw(other, "rev-parse", "HEAD")
	write := func(name, text string) error {
		name = filepath.Join(b.dir, name)
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	link := func(target, name string) error {
		name = filepath.Join(b.dir, name)
		return errors.Join(os.RemoveAll(name), os.Symlink(target, name))
	}
	for name, plant := range map[string]func() error{
		"a file .git": func() error { return write(".git", "gitdir: "+filepath.Join(other, ".git")+"\n") },
		"a link .git": func() error { return link(filepath.Join(other, ".git"), ".git") },
		"commondir": func() error {
			b.raw(b.dir, "init", "-q")
			return write(".git/commondir", filepath.Join(other, ".git")+"\n")
		},
		"alternates": func() error {
			b.raw(b.dir, "init", "-q")
			return errors.Join(write(".git/objects/info/alternates", filepath.Join(other, ".git/objects")+"\n"), write(".git/refs/heads/main", commit+"\n"))
		},
		"a link to objects": func() error {
			b.raw(b.dir, "init", "-q")
			return errors.Join(link(filepath.Join(other, ".git/objects"), ".git/objects"), write(".git/refs/heads/main", commit+"\n"))
		},
		"links to objects": func() error {
			b.raw(b.dir, "init", "-q")
			errs := []error{write(".git/refs/heads/main", commit+"\n")}
			entries, err := os.ReadDir(filepath.Join(other, ".git/objects"))
			for _, e := range entries {
				errs = append(errs, link(filepath.Join(other, ".git/objects", e.Name()), ".git/objects/"+e.Name()))
			}
			return errors.Join(append(errs, err)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b.t, b.dir = t, t.TempDir()
			if err := plant(); err != nil {
				t.Fatal(err)
			}
			for _, by := range []command.By{command.ByAgent, command.ByModel} {
				for _, p := range []params{
					{"operation": "log"}, {"operation": "show"}, {"operation": "diff"}, {"operation": "status"}, {"operation": "branch", "branch": "made"}, {"operation": "commit", "message": "m", "all": true},
					{"operation": "checkout", "branch": "main"}, {"operation": "checkout", "branch": "made", "create": true}, {"operation": "init"}, {"operation": "fetch"},
				} {
					if out, err := b.as(by, git.Options{}, p); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "outside of it") {
						t.Errorf("%s, %v: %s %v", by, p, out, err)
					}
				}
				if out, err := b.as(by, git.Options{Read: []string{other}}, params{"operation": "log"}); err != nil || !strings.Contains(out, "PRIVATE") {
					t.Errorf("%s, a folder that may be read: %s %v", by, out, err)
				}
			}
			made := func(folder string) string { // by the host, which knows its git directory
				if real, err := filepath.EvalSymlinks(b.dir); err != nil || folder != real {
					t.Errorf("folder %q: %v", folder, err)
				}
				return filepath.Join(other, ".git")
			}
			if out, err := b.as(command.ByModel, git.Options{Worktree: made}, params{"operation": "log"}); err != nil || !strings.Contains(out, "PRIVATE") {
				t.Errorf("a worktree of the host: %s %v", out, err)
			}
			for _, by := range []command.By{command.ByUser, command.ByStep} {
				if out, err := b.as(by, git.Options{}, params{"operation": "log"}); err != nil || !strings.Contains(out, "PRIVATE") {
					t.Errorf("%s: %s %v", by, out, err)
				}
			}
			if branches := b.raw(other, "branch", "--format=%(refname:short)"); branches != "main" {
				t.Errorf("branches of the other repository: %s", branches)
			}
		})
	}
}

// TestLayoutsOfRepositories: agents and models work in the usual layouts whose .git leads elsewhere.
func TestLayoutsOfRepositories(t *testing.T) {
	b := newBench(t)
	b.repo()
	main := b.dir
	b.raw(main, "branch", "work")
	for name, lay := range map[string]func(dir string) (workspace string){
		"a worktree": func(dir string) string {
			b.raw(main, "worktree", "add", "-q", filepath.Join(dir, "w"), "work")
			return filepath.Join(dir, "w")
		},
		"a worktree of a bare repository": func(dir string) string {
			b.raw(dir, "clone", "-q", "--bare", main, "bare.git")
			b.raw(filepath.Join(dir, "bare.git"), "worktree", "add", "-q", filepath.Join(dir, "w"), "work")
			return filepath.Join(dir, "w")
		},
		"a bare repository in the folder": func(dir string) string {
			b.raw(dir, "clone", "-q", "--bare", main, ".bare")
			b.dir = dir
			b.put(".git", "gitdir: ./.bare\n")
			b.raw(dir, "worktree", "add", "-q", filepath.Join(dir, "w"), "work")
			return filepath.Join(dir, "w")
		},
		"a submodule": func(dir string) string {
			b.raw(dir, "init", "-q", "super")
			b.raw(filepath.Join(dir, "super"), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", main, "inner")
			return filepath.Join(dir, "super", "inner")
		},
		"a folder below the top": func(dir string) string {
			b.raw(dir, "clone", "-q", main, "c")
			b.dir = filepath.Join(dir, "c")
			b.put("sub/b.txt", "b")
			return filepath.Join(dir, "c", "sub")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.dir = lay(t.TempDir())
			b.put("b.txt", "text\n")
			for _, p := range []params{{"operation": "log"}, {"operation": "status"}, {"operation": "add", "paths": []string{"b.txt"}}, {"operation": "diff"}, {"operation": "commit", "message": "m"}} {
				if out, err := b.as(command.ByAgent, git.Options{}, p); err != nil || p["operation"] == "diff" && !strings.Contains(out, "b.txt") {
					t.Errorf("%v: %s %v", p, out, err)
				}
			}
		})
	}
}

// TestSettingsThatDivertRequests: settings of a repository by which the credentials of the person reach
// another server, and references of another repository. What does not go to a remote is allowed.
func TestSettingsThatDivertRequests(t *testing.T) {
	b := newBench(t)
	b.repo()
	bare := t.TempDir()
	b.raw(bare, "init", "-q", "--bare")
	b.raw(b.dir, "remote", "add", "origin", bare)
	refused := func(by command.By, operation string) bool {
		_, err := b.as(by, git.Options{}, params{"operation": operation})
		return abi.CodeOf(err) == abi.Denied && strings.Contains(err.Error(), "the repository's configuration has")
	}
	for _, key := range []string{"http.proxy", "http.sslVerify", "http.https://example.com.sslCAInfo", "http.extraHeader", "http.cookieFile", "http.proxySSLCert",
		"remote.origin.proxy", "url.https://example.com/.insteadOf", "url.https://example.com/.pushInsteadOf", "credential.useHttpPath", "credential.https://example.com.username"} {
		b.raw(b.dir, "config", key, "false")
		for _, by := range []command.By{command.ByAgent, command.ByModel} {
			for _, operation := range []string{"fetch", "pull", "push"} {
				if !refused(by, operation) {
					t.Errorf("%s: %s by %s is not refused", key, operation, by)
				}
			}
			if _, err := b.as(by, git.Options{}, params{"operation": "status"}); err != nil {
				t.Errorf("%s: status by %s: %v", key, by, err)
			}
		}
		if refused(command.ByUser, "fetch") {
			t.Errorf("%s: refused to a person", key)
		}
		b.raw(b.dir, "config", "--unset", key)
	}
	b.raw(b.dir, "config", "http.postBuffer", "1000000")
	if refused(command.ByAgent, "fetch") {
		t.Error("http.postBuffer is refused")
	}
	b.raw(b.dir, "config", "extensions.refStorage", "files:///elsewhere/.git")
	b.raw(b.dir, "config", "core.repositoryFormatVersion", "0") // so that git of any version reads it
	for _, operation := range []string{"status", "branch"} {
		if _, err := b.as(command.ByAgent, git.Options{}, params{"operation": operation}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s with references elsewhere: %v", operation, err)
		}
	}
}

// TestWorkTreesAreHeld: a call holds each work tree that git may read or write for it, and no longer than it
// lasts; a workspace that was replaced before is not worked in.
func TestWorkTreesAreHeld(t *testing.T) {
	b := newBench(t)
	b.repo()
	top := b.dir
	other := filepath.Join(t.TempDir(), "other")
	b.raw(top, "clone", "-q", top, other)
	b.raw(top, "remote", "add", "other", other)
	b.put("sub/b.txt", "b")
	var held, all []string
	opt := git.Options{HoldTree: func(folder string) (func(), error) {
		held, all = append(held, folder), append(all, folder)
		return func() { held = held[1:] }, nil
	}}
	real := func(folder string) string {
		t.Helper()
		folder, err := filepath.EvalSymlinks(folder)
		if err != nil {
			t.Fatal(err)
		}
		return folder
	}
	for _, c := range []struct {
		dir  string
		p    params
		want []string
	}{
		{top, params{"operation": "status"}, []string{real(top)}},
		{top, params{"operation": "log"}, nil},
		{top, params{"operation": "checkout", "branch": "missing"}, []string{real(top)}},
		{filepath.Join(top, "sub"), params{"operation": "add", "paths": []string{"."}}, []string{filepath.Join(real(top), "sub"), real(top)}},
		{top, params{"operation": "push", "remote": "other"}, []string{other}}, // which may update its files
	} {
		b.dir, all = c.dir, nil
		_, _ = b.as(command.ByStep, opt, c.p) // it may fail: trees are held and released then, too
		if !slices.Equal(all, c.want) || len(held) > 0 {
			t.Errorf("%v: held %q, want %q; still held: %q", c.p, all, c.want, held)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("a user may have no right to make symbolic links on Windows")
	}
	b.dir = filepath.Join(top, "sub")
	opt.HoldTree = func(string) (func(), error) { // the command that has replaced it has ended
		err := errors.Join(os.Rename(b.dir, filepath.Join(top, "was")), os.Symlink(other, b.dir))
		return func() {}, err
	}
	if out, err := b.as(command.ByStep, opt, params{"operation": "status"}); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("a workspace that was replaced: %s %v", out, err)
	}
}

// TestInitBelowARepository: a new repository in a folder of one takes its place for all that work in the folder, so
// only the person and their steps make it.
func TestInitBelowARepository(t *testing.T) {
	b := newBench(t)
	b.repo()
	b.dir = filepath.Join(b.dir, "app")
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, by := range []command.By{command.ByModel, command.ByAgent} {
		if text, err := b.as(by, git.Options{}, params{"operation": "init"}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%v: %s, %v", by, text, err)
		}
	}
	if text, err := b.as(command.ByStep, git.Options{}, params{"operation": "init"}); err != nil {
		t.Errorf("%s, %v", text, err)
	}
}
