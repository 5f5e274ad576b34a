package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
)

// A forgeServer has the repository o/r: its git part over https, and the API of its pull
// requests. answer may take a request about a branch over; n counts those of the branch.
type forgeServer struct {
	git, api *httptest.Server
	answer   func(branch string, n int, w http.ResponseWriter, r *http.Request) bool

	mu    sync.Mutex
	asked map[string]int    // requests of each branch
	pulls map[string]string // branch to title
}

// newForgeServer makes the forge, and a project whose remote is there.
func newForgeServer(t *testing.T) (s *forgeServer, ws string, git func(...string) string, remote string) {
	t.Helper()
	ws, git = project(t)
	path, err := exec.Command("git", "--exec-path").Output()
	must0(t, err)
	backend := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git has no http backend")
	}
	root := t.TempDir()
	remote = filepath.Join(root, "o", "r.git")
	git("clone", "-q", "--bare", ws, remote)
	git("--git-dir", remote, "config", "http.receivepack", "true")
	s = &forgeServer{asked: map[string]int{}, pulls: map[string]string{}}
	s.git = httptest.NewTLSServer(&cgi.Handler{Path: backend, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=worker", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + t.TempDir(),
	}})
	t.Cleanup(s.git.Close)
	s.api = httptest.NewServer(s)
	t.Cleanup(s.api.Close)
	config := filepath.Join(t.TempDir(), "config")
	must0(t, os.WriteFile(config, []byte("[http]\n\tsslVerify = false\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	git("remote", "add", "origin", s.git.URL+"/o/r.git")
	return s, ws, git, remote
}

func (s *forgeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Head, Title string }
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	} else {
		_, body.Head, _ = strings.Cut(r.URL.Query().Get("head"), ":")
	}
	s.mu.Lock()
	s.asked[body.Head]++
	n := s.asked[body.Head]
	s.mu.Unlock()
	if s.answer != nil && s.answer(body.Head, n, w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		fmt.Fprint(w, "[]")
		return
	}
	s.pulls[body.Head] = body.Title
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"number": %d, "state": "open", "html_url": "%s/o/r/pulls/%[1]d", "head": {"ref": %[3]q}, "base": {"ref": "main"}}`, len(s.pulls), s.api.URL, body.Head)
}

// open opens a host that has the forge and a token for it.
func (s *forgeServer) open(t *testing.T, ws string) *host.Host {
	t.Helper()
	getenv := func(name string) string {
		if name == "SENTINEL_SECRET_FORGE_TOKEN" {
			return "forge-token-forge-token"
		}
		return os.Getenv(name)
	}
	return open(t, host.Options{
		Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Getenv: getenv,
		Set: map[string]string{"tickets.review": "off", "worktrees.most": "50", "forge.url": s.api.URL},
	})
}

// greenOrSecond is a model that does both tickets of a project.
func greenOrSecond(r chatRequest) answer {
	if a, ok := forSecond(r); ok {
		return a
	}
	return writes(func(_ int, prompt string) []answer { return []answer{fileOf(firstFile.FindString(prompt), "green\n")} })(r)
}

var firstFile = regexp.MustCompile(`first-[a-z0-9-]+\.txt`)

// A forge that is down, slow or refuses keeps the verified and pushed work of its ticket,
// which waits or is held with a reason, and the next ticket is done.
func TestSpecWorkerBadForges(t *testing.T) {
	status := func(code int, header, body string) func(int, http.ResponseWriter, *http.Request) bool {
		return func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return true
		}
	}
	posted := func(code int, body string) func(int, http.ResponseWriter, *http.Request) bool {
		return func(n int, w http.ResponseWriter, r *http.Request) bool {
			return r.Method == http.MethodPost && status(code, "", body)(n, w, r)
		}
	}
	cases := map[string]struct {
		answer        func(n int, w http.ResponseWriter, r *http.Request) bool
		state, reason string
	}{
		"down": {func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
			return true
		}, "ready", "GET repos/o/r/pulls"},
		"once-down": {func(n int, w http.ResponseWriter, r *http.Request) bool {
			return n == 1 && status(503, "", "")(n, w, r)
		}, "done", ""},
		"slow": {func(int, http.ResponseWriter, *http.Request) bool { time.Sleep(1500 * time.Millisecond); return false }, "done", ""},
		"401":  {status(401, "", `{"message": "Bad credentials"}`), "ready", "Bad credentials"},
		"403":  {status(403, "", `{"message": "Resource not accessible"}`), "ready", "not accessible"},
		"404":  {status(404, "", `{"message": "Not Found"}`), "ready", "Not Found"},
		"409":  {posted(409, `{"message": "conflict"}`), "ready", "409"},
		"422":  {posted(422, `{"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}`), "ready", "Validation Failed; head invalid"},
		"429":  {status(429, "Retry-After: 3600", `{"message": "slow down"}`), "ready", "slow down"},
		"429-short": {func(n int, w http.ResponseWriter, r *http.Request) bool {
			return n == 1 && status(429, "Retry-After: 2", "")(n, w, r)
		}, "done", ""},
		"500":        {status(500, "", "<html>oops</html>"), "ready", "500"},
		"rubbish":    {status(200, "", "{{{"), "ready", "not JSON of the expected form"},
		"html":       {status(200, "", "<html>log in</html>"), "ready", "not JSON of the expected form"},
		"no-number":  {posted(201, `{}`), "ready", "has no number"},
		"redirected": {status(307, "Location: http://127.0.0.2:1/", ""), "on_hold", "leads to another server"},
	}
	// Of each end one case: no answer, a status that is repeated, a delay, rubbish, a hold, and success at the second request.
	inShort(t, cases, "down", "once-down", "429", "500", "rubbish", "redirected")
	s, ws, git, remote := newForgeServer(t)
	s.answer = func(branch string, n int, w http.ResponseWriter, r *http.Request) bool {
		name := strings.TrimSuffix(strings.TrimPrefix(branch, "sentinel/"), "-1")
		c, ok := cases[name]
		return ok && c.answer(n, w, r)
	}
	models := newModelServer(t, greenOrSecond)
	h := s.open(t, ws)
	var names []string
	for name := range cases {
		names = append(names, name)
	}
	for name, f := range workTogether(t, h, ws, git, names) {
		got, want := f.Ticket, cases[name]
		if got.State != want.state || !strings.Contains(got.Error+got.HoldReason, want.reason) || len(got.Error) > 2000 || got.VerificationStatus != "passing" {
			t.Errorf("%s: %s %s, want %s: %q %q", name, got.State, got.VerificationStatus, want.state, got.HoldReason, got.Error)
		}
		if git("--git-dir", remote, "show", "sentinel/"+name+"-1:first-"+name+".txt") != "green" {
			t.Errorf("%s: the work is not at the remote", name)
		}
		s.mu.Lock()
		if title, opened := s.pulls["sentinel/"+name+"-1"]; opened != (want.state == "done") {
			t.Errorf("%s: pull request %q", name, title)
		}
		if s.pulls["sentinel/"+name+"-2"] == "" {
			t.Errorf("%s: no pull request for the next ticket", name)
		}
		s.mu.Unlock()
	}
	if after := time.Until(*ticketOf(t, h, "429-1").Ticket.RetryAfter); after < 50*time.Minute {
		t.Errorf("the server asked for an hour, the ticket waits %s", after)
	}
	// When the forge is back, the next claim opens the pull request without the model.
	s.answer = nil
	turns := models.turns()
	only := map[string]json.RawMessage{"project": json.RawMessage(`"500"`)}
	for f := new(forged); len(f.Worked) == 0; time.Sleep(100 * time.Millisecond) { // until the delay is over
		f = workerEnd(t, h, startShipped(t, h, ws, "forge-worker", only))
	}
	if got := ticketOf(t, h, "500-1").Ticket; got.State != "done" || models.turns() != turns || s.pulls["sentinel/500-1"] == "" {
		t.Errorf("with the forge: %s, %d turns behind %d", got.State, models.turns(), turns)
	}
}

// A forge that is not there keeps no ticket from being worked on, and no work is lost.
func TestSpecWorkerForgeIsNotThere(t *testing.T) {
	s, ws, git, remote := newForgeServer(t)
	s.api.Close()
	newModelServer(t, greenOrSecond)
	h := s.open(t, ws)
	must(t, h, "ticket/create", fmt.Sprintf(firstOf, "gone"), nil)
	must(t, h, "ticket/create", fmt.Sprintf(secondOf, "gone"), nil)
	workerEnd(t, h, startShipped(t, h, ws, "forge-worker", map[string]json.RawMessage{"tasks": json.RawMessage("2")}))
	for id, file := range map[string]string{"gone-1": "first-gone.txt", "gone-2": "second-gone.txt"} {
		got := ticketOf(t, h, id).Ticket
		if got.State != "ready" || !strings.Contains(got.Error, "connection refused") || got.VerificationStatus != "passing" || got.RetryAfter == nil || git("--git-dir", remote, "show", "sentinel/"+id+":"+file) == "" {
			t.Errorf("%s: %+v", id, got)
		}
	}
}
