package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/verify"
	"github.com/sentinel-runtime/sentinel/internal/needs"
)

// repo makes a repository with these files on the branches main and work.
func repo(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	commit(t, dir, map[string]string{"README.md": "a project\n"})
	git(t, dir, "checkout", "-q", "-b", "work")
	commit(t, dir, files)
	git(t, dir, "checkout", "-q", "main")
	return dir
}

func commit(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "change")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func criteria(t *testing.T, text string) *ticket.Criteria {
	t.Helper()
	c := new(ticket.Criteria)
	if err := json.Unmarshal([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	if err := verify.Check(c); err != nil {
		t.Fatal(err)
	}
	return c
}

func verifier(t *testing.T, opts ...func(*verify.Options)) *verify.Verifier {
	m, err := shell.New(shell.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	opt := verify.Options{
		Dir: filepath.Join(t.TempDir(), "verify"), Confine: confine.Runner{Start: func(cmd *exec.Cmd) (confine.Tree, error) { return m.StartTree(cmd) }},
	}
	for _, set := range opts {
		set(&opt)
	}
	v := verify.New(opt)
	t.Cleanup(v.Close)
	return v
}

func run(t *testing.T, v *verify.Verifier, job verify.Job) verify.Result {
	t.Helper()
	r, err := v.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// one runs a single check on branch work.
func one(t *testing.T, v *verify.Verifier, dir, check string) (verify.Result, verify.CheckResult) {
	t.Helper()
	r := run(t, v, verify.Job{Criteria: criteria(t, `[`+check+`]`), RepoURL: dir, Branch: "work", Approved: true})
	if len(r.Checks) != 1 {
		t.Fatalf("checks: %+v", r)
	}
	return r, r.Checks[0]
}

func TestEachCheck(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/users":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id": 7, "name": "ada", "tags": ["a", "b"], "auth": %q}`, r.Header.Get("Authorization"))
		case "/away":
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/users", http.StatusFound)
		case "/text":
			fmt.Fprint(w, "hello world")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	dir := repo(t, map[string]string{
		"src/auth.js": "const jwt = require('jsonwebtoken')\nexports.check = true\n", "test.sh": "echo checking; test \"$CI\" = true && test -z \"$SECRET\"\n", "big/x": "1",
	})
	if err := os.WriteFile(filepath.Join(dir, "uncommitted"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET", "never seen")
	t.Setenv("TEST_JWT", "tok en'1")
	v := verifier(t, func(o *verify.Options) { o.URL, o.Env = server.URL, []string{"TEST_JWT"} })
	for _, c := range []struct{ name, check, status, message string }{
		{"file", `{"type":"file","verify":{"path":"src/auth.js"}}`, "passed", "File exists: src/auth.js"},
		{"folder", `{"type":"file_exists","verify":{"path":"src/"}}`, "passed", "File exists: src/"},
		{"contains", `{"type":"file_exists","verify":{"path":"src/auth.js","contains":["jsonwebtoken","exports."]}}`, "passed", "File exists"},
		{"contains not", `{"type":"file_exists","verify":{"path":"src/auth.js","contains":["jsonwebtoken","Bearer"]}}`, "failed", "Missing pattern: Bearer"},
		{"no file", `{"type":"file_exists","verify":{"path":"src/none.js"}}`, "failed", "File not found: src/none.js"},
		{"not committed", `{"type":"file_exists","verify":{"path":"uncommitted"}}`, "failed", "File not found"},
		{"pattern", `{"type":"pattern","verify":{"file":"src/auth.js","pattern":"^exports\\."}}`, "passed", "Pattern found in src/auth.js:2"},
		{"pattern not found", `{"type":"code_pattern","verify":{"file":"src/auth.js","pattern":"TODO"}}`, "failed", "Pattern not found in src/auth.js: TODO"},
		{"pattern absent", `{"type":"code_pattern","verify":{"file":"src/auth.js","pattern":"TODO","should_match":false}}`, "passed", "absent"},
		{"pattern forbidden", `{"type":"code_pattern","verify":{"file":"src/auth.js","pattern":"jwt","should_match":false}}`, "failed", "must not match, but does in src/auth.js:1"},
		{"pattern without file", `{"type":"code_pattern","verify":{"file":"none.js","pattern":"x","should_match":false}}`, "failed", "File not found"},
		{"test", `{"type":"test","verify":{"command":"sh test.sh"}}`, "passed", "Test passed"},
		{"test fails", `{"type":"test_pass","verify":{"command":"echo broken >&2; exit 3"}}`, "failed", "expected exit code 0, got 3"},
		{"V4: the expected code", `{"type":"test_pass","verify":{"command":"exit 3","expect_exit_code":3}}`, "passed", "Exited with expected code 3"},
		{"V4: 0 is another code", `{"type":"test_pass","verify":{"command":"true","expect_exit_code":3}}`, "failed", "expected exit code 3, got 0"},
		{"no command", `{"type":"test_pass","verify":{"command":"no-such-program-here"}}`, "failed", "a command was not found"},
		{"V9: hangs", `{"type":"test_pass","verify":{"command":"sleep 600 & wait","timeoutMs":300}}`, "failed", "no end after 300ms"},
		{"http", `{"type":"http","verify":{"method":"post","path":"/users","body":{"name":"ada"},"expect_status":201}}`, "passed", "POST /users returned 201"},
		{"http status", `{"type":"http_request","verify":{"path":"/users","expect_status":200}}`, "failed", "Expected 200, got 201"},
		{"http missing", `{"type":"http_request","verify":{"path":"/none"}}`, "failed", "Expected 2xx, got 404"},
		{"V5: body", `{"type":"http_request","verify":{"path":"/users","expect_body":{"name":"ada","tags":["a","b"]}}}`, "passed", "returned 201"},
		{"V5: another body", `{"type":"http_request","verify":{"path":"/users","expect_body":{"name":"bob"}}}`, "failed", `body.name is "ada", not "bob"`},
		{"V5: no field", `{"type":"http_request","verify":{"path":"/users","expect_body":{"email":"x"}}}`, "failed", "body.email is missing"},
		{"V5: text", `{"type":"http_request","verify":{"path":"/text","expect_body":"world"}}`, "passed", "returned 200"},
		{"V5: another text", `{"type":"http_request","verify":{"path":"/text","expect_body":"moon"}}`, "failed", "does not contain moon"},
		{"placeholder", `{"type":"http_request","verify":{"path":"/users","headers":{"Authorization":"Bearer {{TEST_JWT}}"},"expect_body":{"auth":"Bearer {{TEST_JWT}}"}}}`, "passed", "returned 201"},
		{"placeholder in a command", `{"type":"test_pass","verify":{"command":"test \"{{TEST_JWT}}\" = \"tok en'1\""}}`, "passed", "Test passed"},
		{"placeholder without variable", `{"type":"http_request","verify":{"path":"/users","headers":{"Authorization":"Bearer {{SECRET}}"}}}`, "skipped", "{{SECRET}}: no such variable for checks"},
		{"redirect inside", `{"type":"http_request","verify":{"path":"/here"}}`, "passed", "returned 201"},
		{"redirect away", `{"type":"http_request","verify":{"path":"/away"}}`, "failed", "redirected to another host"},
		{"manual", `{"type":"manual","description":"looks good","verify":null}`, "skipped", "a person has to check: looks good"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, check := one(t, v, dir, c.check)
			if check.Status != c.status || !strings.Contains(check.Message, c.message) {
				t.Errorf("got %s: %s, want %s: %s", check.Status, check.Message, c.status, c.message)
			}
			want := map[string]string{"passed": verify.Passing, "failed": verify.Failing, "skipped": verify.BlockedStatus}[c.status]
			if r.Status != want || r.ReadyForPR != (want == verify.Passing) {
				t.Errorf("verification %s, ready %v, want %s", r.Status, r.ReadyForPR, want)
			}
			if check.Status == "failed" && len(r.Feedback) != 1 { // V6: the next attempt gets the failed checks
				t.Errorf("feedback: %q", r.Feedback)
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(dir)), "*", "verify", "checkouts", "*")); len(left) > 0 {
		t.Errorf("checkouts are left: %q", left)
	}
}

// A verification that ends takes no folder from one that begins.
func TestVerificationsAtTheSameTime(t *testing.T) {
	dir, v := repo(t, nil), verifier(t)
	job := verify.Job{Criteria: criteria(t, `[{"id": "a", "type": "file_exists", "verify": {"path": "README.md"}}]`), RepoURL: dir, Branch: "work", Approved: true}
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for range 40 {
				if r, err := v.Run(t.Context(), job); err != nil || r.Blocked != nil {
					t.Errorf("got %v %+v", err, r.Blocked)
				}
			}
		})
	}
	workers.Wait()
}

// V1, V2, V3: nothing passes that did not run.
func TestNothingPassesThatDidNotRun(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	v := verifier(t, func(o *verify.Options) { o.URL = "http://127.0.0.1:1" })
	file := `{"id":"f","type":"file_exists","verify":{"path":"a"}}`
	for _, c := range []struct{ name, repo, branch, checks, status, reason, message string }{
		{"no criteria", dir, "work", ``, "blocked", verify.NoCriteria, "no acceptance criteria"},
		{"V1: unknown type", dir, "work", `{"id":"x","type":"ai_review"}`, "failing", "", ""},
		{"V2: no repository", "", "work", file, "blocked", verify.Refused, "repo_url: is missing"},
		{"no such repository", filepath.Join(t.TempDir(), "none"), "work", file, "blocked", verify.NotFound, "no such file"},
		{"no repository there", t.TempDir(), "work", file, "blocked", verify.NotFound, "not"},
		{"no such branch", dir, "feature/none", file, "blocked", verify.NotFound, "branch feature/none is not in"},
		{"V3: refused connection", dir, "work", `{"id":"h","type":"http_request","verify":{"path":"/"}}`, "blocked", verify.Infrastructure, "connection refused"},
		{"a failure counts first", dir, "work", `{"id":"h","type":"http_request","verify":{"path":"/"}},{"id":"g","type":"file_exists","verify":{"path":"none"}}`, "failing", "", ""},
		{"manual beside passed", dir, "work", file + `,{"id":"m","type":"manual"}`, "blocked", verify.NeedsPerson, "a person has to check"},
		{"infrastructure before manual", dir, "work", `{"id":"m","type":"manual"},{"id":"h","type":"http_request","verify":{"path":"/"}}`, "blocked", verify.Infrastructure, "refused"},
		{"unreachable remote", "https://127.0.0.1:1/r.git", "work", file, "blocked", verify.Infrastructure, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var own ticket.Criteria
			if err := json.Unmarshal([]byte(`[`+c.checks+`]`), &own); err != nil {
				t.Fatal(err)
			}
			r := run(t, v, verify.Job{Criteria: &own, RepoURL: c.repo, Branch: c.branch, Approved: true})
			if r.Status != c.status || r.ReadyForPR {
				t.Errorf("%s, ready %v: %+v", r.Status, r.ReadyForPR, r)
			}
			if c.reason == "" && r.Blocked != nil || c.reason != "" && (r.Blocked == nil || r.Blocked.Reason != c.reason || !strings.Contains(r.Blocked.Message, c.message)) {
				t.Errorf("blocked %+v, want %s: %s", r.Blocked, c.reason, c.message)
			}
			if r.Summary.Total != len(own.Checks) || r.Summary.Passed+r.Summary.Failed+r.Summary.Skipped != r.Summary.Total {
				t.Errorf("summary %+v of %d checks", r.Summary, len(own.Checks))
			}
		})
	}
}

func TestCommandsNeedApproval(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	marker := filepath.Join(t.TempDir(), "executed")
	v := verifier(t)
	r := run(t, v, verify.Job{Criteria: criteria(t, fmt.Sprintf(`[{"type":"test","verify":{"command":"touch %s"}},
		{"type":"http","verify":{"path":"/","service":{"command":"touch %s; sleep 9"}}}]`, marker, marker)), RepoURL: dir, Branch: "work"})
	if r.Status != "blocked" || r.Blocked.Reason != verify.NeedsApproval || r.Summary.Skipped != 2 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a command was executed")
	}
}

// requests is a server that counts what it gets.
type requests struct {
	*httptest.Server
	got atomic.Int32
}

func newRequests(t *testing.T) *requests {
	r := new(requests)
	r.Server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { r.got.Add(1) }))
	t.Cleanup(r.Close)
	return r
}

// V8: a request that may change something needs an approval as a command does, one that only
// reads does not.
func TestRequestsNeedApproval(t *testing.T) {
	t.Setenv("KEY", "secret")
	dir, server := repo(t, nil), newRequests(t)
	v := verifier(t, func(o *verify.Options) { o.URL, o.Env = server.URL, []string{"KEY"} })
	for _, c := range []struct {
		fields string
		line   string // that a person approves; "" for a request that needs no approval
	}{
		{`{"path":"/a"}`, ""},
		{`{"path":"/a","method":"head","headers":{"Accept":"text/plain","If-None-Match":"x"},"body":null}`, ""},
		{`{"path":"/a","method":"OPTIONS"}`, ""},
		{`{"path":"/a","method":"DELETE"}`, "DELETE /a at verify.url"},
		{`{"path":"/a","method":"post","body":{"n":1},"headers":{"Authorization":"Basic YWRtaW46YWRtaW4="}}`, `POST /a at verify.url with the headers {"Authorization":"Basic YWRtaW46YWRtaW4="} with the body {"n":1}`},
		{`{"path":"/a","headers":{"cookie":"s=1"}}`, `GET /a at verify.url with the headers {"cookie":"s=1"}`},
		{`{"path":"/a","headers":{"X-HTTP-Method-Override":"DELETE"}}`, `GET /a at verify.url with the headers {"X-HTTP-Method-Override":"DELETE"}`},
		{`{"path":"/a","headers":{"Accept":"{{KEY}}"}}`, `GET /a at verify.url with the headers {"Accept":"{{KEY}}"}`},
		{`{"path":"/a?key={{KEY}}"}`, "GET /a?key={{KEY}} at verify.url"},
		{`{"path":"/a","body":"x"}`, `GET /a at verify.url with the body "x"`},
	} {
		own := criteria(t, `[{"type":"http_request","verify":`+c.fields+`}]`)
		if lines := strings.Join(verify.Commands(own), "\n"); lines != c.line {
			t.Errorf("%s: a person approves %q, want %q", c.fields, lines, c.line)
		}
		before := server.got.Load()
		r := run(t, v, verify.Job{Criteria: own, RepoURL: dir, Branch: "work"})
		if c.line == "" {
			if r.Status != verify.Passing || server.got.Load() != before+1 {
				t.Errorf("%s: %+v", c.fields, r)
			}
			continue
		}
		if r.Blocked == nil || r.Blocked.Reason != verify.NeedsApproval || !strings.Contains(r.Blocked.Message, "check ac-1: a person has to approve the request: "+c.line) || server.got.Load() != before {
			t.Errorf("%s: %+v, %d requests", c.fields, r, server.got.Load()-before)
		}
		if r = run(t, v, verify.Job{Criteria: own, RepoURL: dir, Branch: "work", Approved: true}); r.Status != verify.Passing || server.got.Load() != before+1 {
			t.Errorf("%s, approved: %+v", c.fields, r)
		}
	}
}

// Requests of an agent's criteria go to a service of their own or where the user wants them,
// and not to what happens to listen on this machine.
func TestRequestsOfAgentsHaveNoDefault(t *testing.T) {
	dir, server := repo(t, nil), newRequests(t)
	v := verifier(t)
	own := criteria(t, `[{"id":"up","type":"http_request","verify":{"path":"/"}}]`)
	for _, job := range []verify.Job{{Criteria: own}, {Criteria: own, Approved: true}, {Criteria: criteria(t, `[{"id":"up","type":"http_request","verify":{"method":"PUT","path":"/"}}]`)}} {
		job.RepoURL, job.Branch = dir, "work"
		r := run(t, v, job)
		if r.Blocked == nil || r.Blocked.Reason != verify.Refused || r.Blocked.Message != "check up: requests of an agent's criteria have no default URL: give the check a service, or have a person set verify.url" {
			t.Errorf("approved %v: %+v", job.Approved, r)
		}
	}
	if r := run(t, v, verify.Job{Criteria: own, RepoURL: dir, Branch: "work", ServiceURL: server.URL}); r.Status != verify.Passing {
		t.Errorf("with the URL of a person: %+v", r)
	}
	// Nothing may listen there, but the request of a person's check is made.
	if r := run(t, v, verify.Job{Criteria: own, RepoURL: dir, Branch: "work", Approved: true, ByPerson: true}); r.Blocked != nil && r.Blocked.Reason == verify.Refused {
		t.Errorf("criteria of a person: %+v", r)
	}
}

func TestService(t *testing.T) {
	needs.Program(t, "", nil, "python3", "--version")
	dir := repo(t, map[string]string{"hello.json": `{"ok":true}`})
	v := verifier(t)
	if r, c := one(t, v, dir, `{"type": "test_pass", "verify": {"command": "python3 --version"}}`); r.Status != verify.Passing {
		t.Skipf("python3 does not work in a check on this machine: %s", strings.Join(strings.Fields(c.Output), " "))
	}
	serve := `"service":{"command":"exec python3 -m http.server $PORT --bind 127.0.0.1","readyPath":"/"}`
	r := run(t, v, verify.Job{Approved: true, RepoURL: dir, Branch: "work", Criteria: criteria(t, `[
		{"type":"http","verify":{"path":"/hello.json","expect_body":{"ok":true},`+serve+`}},
		{"type":"http","verify":{"path":"/none","expect_status":404,`+serve+`}}]`)})
	if r.Status != "passing" {
		t.Errorf("%+v", r)
	}
	t.Run("closed network", func(t *testing.T) {
		for _, g := range confine.Gaps() {
			if g.Wall == confine.WallNamespaces {
				t.Skip(g)
			}
		}
		other := httptest.NewServer(http.NotFoundHandler())
		defer other.Close()
		address := strings.TrimPrefix(other.URL, "http://")
		connects := `python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", ` + address[strings.LastIndex(address, ":")+1:] + `))'`
		closed := strings.Replace(serve, `"readyPath"`, `"network":"closed","readyPath"`, 1)
		r := run(t, v, verify.Job{Approved: true, RepoURL: dir, Branch: "work", Criteria: criteria(t, `[
			{"type":"test","verify":{"command":"`+connects+`"}},
			{"type":"test","verify":{"command":"`+connects+`","network":"closed","expect_exit_code":1}},
			{"type":"http","verify":{"path":"/hello.json","expect_body":{"ok":true},`+closed+`}}]`)})
		if r.Status != "passing" {
			t.Errorf("%+v", r)
		}
		r = run(t, verifier(t, func(o *verify.Options) { o.Offline = true }), verify.Job{Approved: true, RepoURL: dir, Branch: "work", Criteria: criteria(t, `[
			{"type":"test","verify":{"command":"`+connects+`","expect_exit_code":1}}]`)})
		if r.Status != "passing" {
			t.Errorf("by the setting: %+v", r)
		}
	})
	t.Run("port is taken", func(t *testing.T) {
		other := httptest.NewServer(http.NotFoundHandler())
		defer other.Close()
		port := other.URL[strings.LastIndex(other.URL, ":")+1:]
		_, c := one(t, v, dir, `{"type":"http","verify":{"path":"/","expect_status":404,"service":{"command":"sleep 5","port":`+port+`}}}`)
		if c.Status != "skipped" || c.Reason != verify.Infrastructure || !strings.Contains(c.Message, "is taken by another program") {
			t.Errorf("%+v", c)
		}
	})
	t.Run("ends early", func(t *testing.T) {
		_, c := one(t, v, dir, `{"type":"http","verify":{"path":"/","service":{"command":"echo no such module; exit 4"}}}`)
		if c.Status != "failed" || !strings.Contains(c.Message, "ended with exit code 4 before it was ready") || !strings.Contains(c.Output, "no such module") {
			t.Errorf("%+v", c)
		}
	})
	t.Run("never ready", func(t *testing.T) {
		_, c := one(t, v, dir, `{"type":"http","verify":{"path":"/","service":{"command":"sleep 60","timeoutMs":200}}}`)
		if c.Status != "failed" || !strings.Contains(c.Message, "did not answer") {
			t.Errorf("%+v", c)
		}
	})
}

// Services of several checks share the loopback interface of the machine. A process that listens where
// a service should is not taken for it, whether the service is asked if it is ready or not.
func TestServiceOfAnother(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which process has a connection")
	}
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip(err)
	}
	dir := repo(t, map[string]string{"a": "1"})
	v := verifier(t)
	begun, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	for _, ready := range []string{"", `,"readyPath":"/"`} {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := free.Addr().String()
		free.Close()
		other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") })}
		served := make(chan error, 1)
		go func() {
			c, err := begun.Accept() // the service has begun, and has not listened
			if err != nil {
				served <- err
				return
			}
			c.Close()
			l, err := net.Listen("tcp", address)
			if err != nil {
				served <- err
				return
			}
			served <- other.Serve(l)
		}()
		_, port, _ := strings.Cut(address, ":")
		_, signal, _ := strings.Cut(begun.Addr().String(), ":")
		_, c := one(t, v, dir, `{"type":"http","verify":{"path":"/","expect_body":"fine","service":{"command":"/bin/bash -c ': < /dev/tcp/127.0.0.1/`+signal+`; sleep 60'","port":`+port+ready+`}}}`)
		if c.Status != "failed" || !strings.Contains(c.Message, "does not belong to this service") || !strings.Contains(c.Message, fmt.Sprint(os.Getpid())) {
			t.Errorf("ready %q: %+v", ready, c)
		}
		other.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}
}

// V13: what checks read stays inside the checkout.
func TestPathsStayInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := repo(t, map[string]string{"a": "1"})
	git(t, dir, "checkout", "-q", "work")
	for name, target := range map[string]string{"link": outside, "up": "../../../..", "inside": "a"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, dir, nil)
	v := verifier(t)
	for check, status := range map[string]string{
		`{"type":"file","verify":{"path":"link"}}`:                             "failed",
		`{"type":"file","verify":{"path":"link","contains":["secret"]}}`:       "failed",
		`{"type":"pattern","verify":{"file":"link","pattern":"secret"}}`:       "failed",
		`{"type":"file","verify":{"path":"up/etc/passwd"}}`:                    "failed",
		`{"type":"file","verify":{"path":"inside","contains":["1"]}}`:          "passed",
		`{"type":"pattern","verify":{"file":"inside","pattern":"(a+)+$|^1$"}}`: "passed",
	} {
		if _, c := one(t, v, dir, check); c.Status != status || strings.Contains(c.Message+c.Output, "secret\n") {
			t.Errorf("%s: %+v", check, c)
		}
	}
	for _, path := range []string{"/etc/passwd", "../x", "a/../../x", ""} {
		err := verify.Check(&ticket.Criteria{Checks: []ticket.Check{{Type: "file", Verify: json.RawMessage(fmt.Sprintf(`{"path":%q}`, path))}}})
		if err == nil || !strings.Contains(err.Error(), "verify.path") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestCriteriaAreChecked(t *testing.T) {
	for _, c := range []struct{ checks, message string }{
		{`{"type":"ai_review"}`, `acceptance_criteria.checks[0].type: "ai_review": no such type of check; known are http_request`},
		{`{"type":"file","verify":{"path":"a","contain":["x"]}}`, `checks[0].verify.contain: unknown key "contain"; known: contains, path, timeoutMs`},
		{`{"type":"pattern","verify":{"path":"a","pattern":"x"}}`, `checks[0].verify.path: unknown key "path"; known: file, pattern, should_match, timeoutMs`},
		{`{"type":"http","verify":{"path":"/","service":{"cmd":"x"}}}`, `checks[0].verify.service.cmd: unknown key "cmd"; known: command, network, port, readyPath, timeoutMs`},
		{`{"type":"file","verify":{"path":7}}`, "checks[0].verify.path: want a string, got a number"},
		{`{"type":"file","verify":"a"}`, "checks[0].verify: want an object"},
		{`{"type":"pattern","verify":{"file":"a","pattern":"a(?=b)"}}`, "the syntax is RE2, which has no lookahead"},
		{`{"type":"test","verify":{"command":" "}}`, "checks[0].verify.command"},
		{`{"type":"test","verify":{"command":"x","expect_exit_code":256}}`, "256: want 0 to 255"},
		{`{"type":"test","verify":{"command":"x","timeoutMs":-1}}`, "timeoutMs"},
		{`{"type":"http","verify":{"path":"http://evil/"}}`, "want a path that begins with one slash"},
		{`{"type":"http","verify":{"path":"//evil/"}}`, "want a path that begins with one slash"},
		{`{"type":"http","verify":{"path":"/","method":"CONNECT"}}`, "verify.method"},
		{`{"type":"http","verify":{"path":"/","headers":{"Host":"x"}}}`, "verify.headers"},
		{`{"type":"http","verify":{"path":"/","service":{"command":"x","port":80}}}`, "verify.service.port"},
		{`{"id":"a","type":"manual"},{"id":"a","type":"manual"}`, "checks[1].id: \"a\": another check has this id"},
	} {
		var own ticket.Criteria
		if err := json.Unmarshal([]byte(`[`+c.checks+`]`), &own); err != nil {
			t.Fatal(err)
		}
		if err := verify.Check(&own); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v, want %s", c.checks, err, c.message)
		}
	}
}

// Criteria of an agent tell nothing of files with secrets, whatever link leads to them; those of a
// person do.
func TestAgentsCriteriaDoNotReadSecrets(t *testing.T) {
	dir := repo(t, map[string]string{".env": "API_KEY=x1\n", "a/prod.env": "x1", "a/b/c": "", "notes.txt": "API_KEY=x1\n", "key.txt": "-----BEGIN PRIVATE KEY-----\nx1\n"})
	git(t, dir, "checkout", "-q", "work")
	for name, target := range map[string]string{"link.txt": ".env", "d": "a/b"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "link")
	git(t, dir, "checkout", "-q", "main")
	v := verifier(t, func(o *verify.Options) { o.Secret = command.FileRules{}.MatchContent })
	for name, hidden := range map[string]bool{".env": true, "link.txt": true, "d/../prod.env": true, "./a/../.env": true, "key.txt": true, "notes.txt": false} {
		for _, check := range []string{`{"type":"pattern","verify":{"file":"` + name + `","pattern":"x1"}}`, `{"type":"file","verify":{"path":"` + name + `","contains":["x1"]}}`} {
			for _, person := range []bool{false, true} {
				r := run(t, v, verify.Job{Criteria: criteria(t, `[`+check+`]`), RepoURL: dir, Branch: "work", ByPerson: person})
				want := verify.Passed
				if hidden && !person {
					want = verify.Skipped
				}
				if got := r.Checks[0]; got.Status != want || want == verify.Skipped && got.Reason != verify.Refused {
					t.Errorf("%s, by a person %t: %+v", check, person, got)
				}
			}
		}
	}
}

// TestAgentsCriteriaMatchRedactedTexts: the author of criteria who does not see secrets does not find
// out their values by patterns either.
func TestAgentsCriteriaMatchRedactedTexts(t *testing.T) {
	dir := repo(t, map[string]string{"settings.txt": "url=x\nkey=hunter2secret\n"})
	v := verifier(t, func(o *verify.Options) {
		o.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2secret", "[redacted]") }
	})
	status := func(person bool, guess string) (all []string) {
		checks := `[{"type":"pattern","verify":{"file":"settings.txt","pattern":"key=` + guess + `"}},{"type":"file","verify":{"path":"settings.txt","contains":["key=` + guess + `"]}}]`
		for _, c := range run(t, v, verify.Job{Criteria: criteria(t, checks), RepoURL: dir, Branch: "work", ByPerson: person}).Checks {
			all = append(all, c.Status)
		}
		return all
	}
	if right, wrong := status(false, "hunter2"), status(false, "hunter3"); !slices.Equal(right, wrong) {
		t.Errorf("a right guess: %s, a wrong one: %s", right, wrong)
	}
	if all := status(true, "hunter2"); !slices.Equal(all, []string{verify.Passed, verify.Passed}) {
		t.Errorf("of a person: %s", all)
	}
}

func TestCancelledVerification(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	v := verifier(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := v.Run(ctx, verify.Job{Criteria: criteria(t, `[{"type":"test","verify":{"command":"sleep 60"}}]`), RepoURL: dir, Branch: "work", Approved: true})
	if err == nil {
		t.Error("no error")
	}
}

// V10: "no timeout on whole verification unless set": the limit is that of each check.
func TestV10NoTimeoutOfTheWhole(t *testing.T) {
	const limit = 8 * time.Second // the race detector makes starts slow
	v := verifier(t, func(o *verify.Options) { o.Timeout = limit })
	slow := `{"type":"test","verify":{"command":"sleep 4.5"}}`
	r := run(t, v, verify.Job{Criteria: criteria(t, `[`+slow+`,`+slow+`]`), RepoURL: repo(t, nil), Branch: "work", Approved: true})
	if r.Status != verify.Passing || r.Summary.Passed != 2 || r.DurationMs <= limit.Milliseconds() {
		t.Errorf("%+v", r)
	}
}

func FuzzCriteria(f *testing.F) {
	f.Add(`{"checks":[{"id":"a","type":"http","verify":{"path":"/","service":{"command":"x"}}}]}`)
	f.Add(`[{"type":"pattern","verify":{"file":"a","pattern":"(a+)+$"}},{"type":"manual"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var c ticket.Criteria
		if json.Unmarshal([]byte(text), &c) != nil || verify.Check(&c) != nil {
			return
		}
		for _, own := range c.Checks { // what is accepted once is accepted as it was stored
			if own.ID == "" {
				t.Errorf("a check without an id: %s", text)
			}
		}
		if err := verify.Check(&c); err != nil {
			t.Errorf("%s: again: %v", text, err)
		}
	})
}

// The shim of a version manager ends with 127 where it cannot read its folder. The message says which
// settings it needs, and not that the program is missing.
func TestShimOfVersionManager(t *testing.T) {
	v := verifier(t)
	dir := repo(t, map[string]string{"python3": "#!/bin/sh\necho 'python3: no version is set' >&2\nexit 127\n"})
	if _, c := one(t, v, dir, `{"type": "test_pass", "verify": {"command": "sh ./python3"}}`); !strings.Contains(c.Message, "unless verify.read names it") {
		t.Errorf("a shim: %+v", c)
	}
	if _, c := one(t, v, dir, `{"type": "test_pass", "verify": {"command": "no-such-program"}}`); !strings.HasSuffix(c.Message, "got 127 (a command was not found)") {
		t.Errorf("a missing program: %+v", c)
	}
}
