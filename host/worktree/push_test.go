package worktree_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestPush(t *testing.T) {
	b := newBench(t)
	b.first()
	push := func() worktree.Pushed {
		t.Helper()
		out, err := b.s.Push(t.Context(), "T-1", 0, "")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	w := b.add(worktree.Add{})
	if p := push(); p.Pushed || !strings.Contains(p.Reason, "no remote origin") {
		t.Errorf("no remote: %+v", p)
	}
	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("clone", "-q", "--bare", "--single-branch", b.repo, remote)
	b.git("remote", "add", "origin", remote)
	put(t, w.Path, "a.txt", "work\n")
	c := b.commit("work", "")
	for range 2 { // repeated, it finds what it did
		if p := push(); !p.Pushed || p.Commit != c.Commit || git(t, remote, "rev-parse", "sentinel/T-1") != c.Commit || p.Remote != remote {
			t.Errorf("got %+v", p)
		}
	}
	// The base moved, so the branch is replaced: it is the worker's own.
	base := b.change("b.txt", "theirs\n")
	if _, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil {
		t.Fatal(err)
	}
	if p := push(); !p.Pushed || git(t, remote, "rev-parse", "sentinel/T-1~1") != base {
		t.Errorf("replaced: %+v", p)
	}
	if git(t, remote, "rev-parse", "main") == base {
		t.Error("the base was pushed")
	}
	// The next claim replaces it too, but not what another has pushed there.
	b.claim("T-1", 2)
	w = b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "second\n")
	second := b.commit("second", "")
	if p := push(); !p.Pushed || git(t, remote, "rev-parse", "sentinel/T-1") != second.Commit {
		t.Errorf("second claim: %+v", p)
	}
	git(t, remote, "update-ref", "refs/heads/sentinel/T-1", c.Commit)
	put(t, w.Path, "a.txt", "third\n")
	b.commit("third", "")
	if p := push(); p.Pushed || !strings.Contains(p.Reason, "stale") || git(t, remote, "rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("another has pushed: %+v", p)
	}
	git(t, remote, "update-ref", "refs/heads/sentinel/T-1", second.Commit)
	// A lock of another git on the remote is an error that can be retried, not a rejection.
	put(t, remote, "refs/heads/sentinel/T-1.lock", "")
	if _, err := b.s.Push(t.Context(), "T-1", 0, ""); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("a locked remote: %v, want %s", err, abi.Unavailable)
	}
	if err := os.Remove(filepath.Join(remote, "refs/heads/sentinel/T-1.lock")); err != nil {
		t.Fatal(err)
	}
	put(t, remote, "hooks/pre-receive", "#!/bin/sh\necho protected; exit 1\n")
	if err := os.Chmod(filepath.Join(remote, "hooks/pre-receive"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p := push(); !p.Pushed { // hooks of a repository on this machine are not executed
		t.Errorf("got %+v", p)
	}
	if err := os.RemoveAll(remote); err != nil {
		t.Fatal(err)
	}
	_, err := b.s.Push(t.Context(), "T-1", 0, "")
	refused(t, err, abi.NotFound)
	b.git("remote", "set-url", "origin", "ext::sh -c true")
	_, err = b.s.Push(t.Context(), "T-1", 0, "")
	refused(t, err, abi.BadFields, "scheme")
}

// gitServer serves repositories as forges do, for who has the token. It is not started.
func gitServer(t *testing.T, root, token string, seen *bytes.Buffer) *httptest.Server {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git has no http backend")
	}
	h := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=worker", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + t.TempDir()}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.WriteString(r.Method + " " + r.URL.String() + "\n")
		if strings.HasPrefix(r.URL.Path, "/down/") {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(w, r, "/open"+strings.TrimPrefix(r.URL.Path, "/moved")+"?"+r.URL.RawQuery, http.StatusFound)
			return
		}
		if _, password, _ := r.BasicAuth(); password != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestPushOverHTTPS(t *testing.T) {
	const token = "hunter2-hunter2-hunter2"
	b := newBench(t)
	b.first()
	b.git("checkout", "-q", "-b", "trunk") // main is there too, and is not the default branch
	b.change("trunk.txt", "trunk\n")
	root := t.TempDir()
	remote := filepath.Join(root, "o", "r.git")
	b.git("clone", "-q", "--bare", b.repo, remote)
	git(t, remote, "config", "http.receivepack", "true")
	var seen, logged bytes.Buffer
	server := gitServer(t, root, token, &seen)
	server.StartTLS()
	config := filepath.Join(t.TempDir(), "config")
	put(t, filepath.Dir(config), "config", "[http]\n\tsslVerify = false\n")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	// The settings of a repository around the folder of worktrees divert no request.
	git(t, filepath.Dir(b.dir), "init", "-q")
	git(t, filepath.Dir(b.dir), "config", "http.proxy", "http://127.0.0.1:1")
	// A repository of another machine is copied, and pushed to directly.
	credential := gitsource.Credential{URL: server.URL, Token: token}
	b.s = b.open(worktree.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil)), Credential: func() (gitsource.Credential, error) { return credential, nil }})
	b.tickets["T-1"] = worktree.Ticket{ID: "T-1", RepoURL: server.URL + "/o/r.git", Token: 1}
	w := b.add(worktree.Add{})
	if w.Base != "trunk" {
		t.Errorf("the default branch: %+v", w)
	}
	put(t, w.Path, "a.txt", "work\n")
	c := b.commit("work", "")
	p, err := b.s.Push(t.Context(), "T-1", 0, "")
	if err != nil || !p.Pushed || git(t, remote, "rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("got %+v, %v", p, err)
	}
	next := filepath.Join(t.TempDir(), "next")
	git(t, b.repo, "clone", "-q", remote, next)
	put(t, next, "b.txt", "theirs\n")
	git(t, next, "add", ".")
	git(t, next, "commit", "-q", "-m", "theirs")
	git(t, next, "push", "-q", "origin", "trunk")
	if r, err := b.s.Rebase(t.Context(), "T-1", 0); err != nil || !r.Moved || r.BaseCommit != git(t, next, "rev-parse", "HEAD") {
		t.Errorf("rebase: %+v, %v", r, err)
	}
	if p, err := b.s.Push(t.Context(), "T-1", 0, ""); err != nil || !p.Pushed {
		t.Errorf("got %+v, %v", p, err)
	}
	credential.Token = "another-token-another"
	put(t, w.Path, "a.txt", "more\n")
	b.commit("more", "")
	_, err = b.s.Push(t.Context(), "T-1", 0, "")
	refused(t, err, abi.Denied)
	if text := err.Error(); strings.Contains(text, credential.Token) {
		t.Errorf("the error has the token: %s", text)
	}
	credential.URL, credential.Token = "https://elsewhere.example", token
	_, err = b.s.Push(t.Context(), "T-1", 0, "")
	refused(t, err, abi.Denied)
	// A server that is down is tried again; one that leads elsewhere does not get the token.
	credential.URL = server.URL
	for path, want := range map[string]abi.Code{"/down/o/r.git": abi.Unavailable, "/moved/o/r.git": abi.Unavailable} {
		b.claim("T-"+path, 1)
		_, err = b.s.Add(t.Context(), worktree.Add{Ticket: "T-" + path, Repo: server.URL + path})
		refused(t, err, want)
	}
	if strings.Contains(seen.String(), "/open/") {
		t.Error("a redirect was followed with the token")
	}
	for name, text := range map[string]string{"the requests": seen.String(), "the log": logged.String(), "the settings": read(t, filepath.Join(filepath.Dir(w.Path), "git", "config"))} {
		if strings.Contains(text, token) {
			t.Errorf("%s have the token", name)
		}
	}
}

// TestPushOverHTTP: a remote over http is one of this machine, and gets the token as one over
// https does. Others are refused before the work begins.
func TestPushOverHTTP(t *testing.T) {
	b := newBench(t)
	b.first()
	root := t.TempDir()
	remote := filepath.Join(root, "r.git")
	b.git("clone", "-q", "--bare", b.repo, remote)
	git(t, remote, "config", "http.receivepack", "true")
	server := gitServer(t, root, "hunter2-hunter2-hunter2", new(bytes.Buffer))
	server.Start()
	b.s = b.open(worktree.Options{Credential: func() (gitsource.Credential, error) {
		return gitsource.Credential{URL: server.URL, Token: "hunter2-hunter2-hunter2"}, nil
	}})
	b.git("remote", "add", "origin", server.URL+"/r.git")
	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "work\n")
	c := b.commit("work", "")
	if p, err := b.s.Push(t.Context(), "T-1", 0, ""); err != nil || !p.Pushed || git(t, remote, "rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("got %+v, %v", p, err)
	}
	server.Close()
	put(t, w.Path, "a.txt", "more\n")
	b.commit("more", "")
	_, err := b.s.Push(t.Context(), "T-1", 0, "")
	refused(t, err, abi.Unavailable, "git push to "+server.URL+"/r.git")
	b.git("remote", "set-url", "origin", "http://forge.example/o/r.git")
	b.claim("T-2", 1)
	_, err = b.s.Add(t.Context(), worktree.Add{Ticket: "T-2"})
	refused(t, err, abi.BadFields, "remote origin: http is not encrypted", "https or an ssh URL of forge.example")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	realRemote = flag.String("worktree.remote", "", "a repository of a real server over https for TestRealRemote")
	realToken  = flag.String("worktree.token", "", "a token that may write to it")
)

// TestRealRemote clones, rebases and pushes on a real server: go test ./host/worktree -run
// RealRemote -worktree.remote URL -worktree.token TOKEN
func TestRealRemote(t *testing.T) {
	if *realRemote == "" {
		t.Skip("needs -worktree.remote")
	}
	b := newBench(t)
	config := filepath.Join(t.TempDir(), "config")
	put(t, filepath.Dir(config), "config", "[http]\n\tsslVerify = false\n") // a server for tests signs its own certificate
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	b.s = b.open(worktree.Options{Credential: func() (gitsource.Credential, error) {
		return gitsource.Credential{URL: *realRemote, Token: *realToken}, nil
	}})
	id := fmt.Sprint("real-", time.Now().UnixNano())
	b.tickets[id] = worktree.Ticket{ID: id, RepoURL: *realRemote, Token: 1}
	w, err := b.s.Add(t.Context(), worktree.Add{Ticket: id})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		put(t, w.Path, "real.txt", fmt.Sprint(i))
		c, err := b.s.Commit(t.Context(), id, 1, "work", "")
		if err != nil || !c.Changed {
			t.Fatalf("commit: %+v, %v", c, err)
		}
		if r, err := b.s.Rebase(t.Context(), id, 1); err != nil || r.Conflict {
			t.Errorf("rebase: %+v, %v", r, err)
		}
		if p, err := b.s.Push(t.Context(), id, 1, ""); err != nil || !p.Pushed || p.Commit != c.Commit {
			t.Errorf("push: %+v, %v", p, err)
		}
	}
	if r, err := b.s.Remove(t.Context(), id, 1); err != nil || !r.Removed {
		t.Errorf("remove: %+v, %v", r, err)
	}
}

// TestPushOverSSH: ssh gets the configured key and known hosts, and checks the key of the
// host.
func TestPushOverSSH(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program in place of ssh is a shell script")
	}
	b := newBench(t)
	b.first()
	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("clone", "-q", "--bare", b.repo, remote)
	bin, asked := t.TempDir(), filepath.Join(t.TempDir(), "asked")
	put(t, bin, "ssh", "#!/bin/sh\necho \"$@\" >> '"+asked+"'\nfor last; do :; done\nexec sh -c \"$last\"\n")
	if err := os.Chmod(filepath.Join(bin, "ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	b.s = b.open(worktree.Options{SSHKey: "/keys/it's mine", KnownHosts: "/keys/hosts"})
	b.tickets["T-1"] = worktree.Ticket{ID: "T-1", RepoURL: "ssh://git@forge.example" + remote, Token: 1}
	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "work\n")
	c := b.commit("work", "")
	if p, err := b.s.Push(t.Context(), "T-1", 0, ""); err != nil || !p.Pushed || git(t, remote, "rev-parse", "sentinel/T-1") != c.Commit {
		t.Errorf("got %+v, %v", p, err)
	}
	lines := strings.Split(strings.TrimSpace(read(t, asked)), "\n")
	if len(lines) < 3 {
		t.Errorf("ssh was asked %q", lines)
	}
	for _, line := range lines {
		for _, want := range []string{"-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oIdentitiesOnly=yes", "-i /keys/it's mine", "-oUserKnownHostsFile=/keys/hosts", "git@forge.example"} {
			if !strings.Contains(line, want) {
				t.Errorf("ssh was asked %q without %s", line, want)
			}
		}
	}
}
