package serve_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/serve"
)

// repository makes a git repository with these files on branch work.
func repository(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "work"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "work"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// TestSpecVerifierPort has the lines of S003 with curl: a server with the verifier alone,
// which reads bodies that curl sends as a form.
func TestSpecVerifierPort(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	project := t.TempDir()
	repository(t, project, map[string]string{"test.txt": "x"})
	ready := make(chan serve.Start, 1)
	server, err := serve.Open(t.Context(), serve.Options{
		Host: host.Options{
			Workspace: project, Config: filepath.Join(t.TempDir(), "none.json"),
			Set: map[string]string{"serve.listen": "127.0.0.1:0", "verify.listen": "127.0.0.1:0", "serve.noAuth": "true"},
		},
		Ready: func(s serve.Start) { ready <- s },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var start serve.Start
	select {
	case start = <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the server does not start")
	}
	curl := func(url, body, kind string) (int, map[string]any) {
		t.Helper()
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if kind != "" {
			req.Header.Set("Content-Type", kind)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%s: %s: %v", url, text, err)
		}
		return res.StatusCode, out
	}
	// "API accepts acceptance_criteria: POST /tickets with JSON criteria returns 201"
	status, ticket := curl(start.URL+"/tickets", `{"id": "TEST-001", "title": "Test with criteria", "acceptance_criteria": {"checks": [
	  {"id": "ac-1", "type": "file_exists", "description": "Test", "verify": {"path": "test.txt"}},
	  {"id": "ac-2", "type": "file_exists", "description": "Test", "verify": {"path": "none.txt"}}]}}`, "application/json")
	if status != http.StatusCreated || ticket["verification_status"] != "pending" {
		t.Errorf("create: %d %v", status, ticket)
	}
	if status, health := curl(start.Verifier+"/health", "", ""); status != http.StatusOK {
		t.Errorf("health: %d %v", status, health)
	}
	const form = "application/x-www-form-urlencoded"
	status, result := curl(start.Verifier+"/verify", `{"ticket_id": "TEST-001", "branch_name": "work", "repo_url": "`+project+`"}`, form)
	summary, _ := result["summary"].(map[string]any)
	if status != http.StatusOK || result["verification_status"] != "failing" || summary["total"] != 2.0 || summary["passed"] != 1.0 || summary["failed"] != 1.0 || summary["skipped"] != 0.0 {
		t.Errorf("verify: %d %v", status, result)
	}
	first := result["checks"].([]any)[0].(map[string]any)
	if first["check_id"] != "ac-1" || first["status"] != "passed" || first["message"] != "File exists: test.txt" || first["duration_ms"] == nil {
		t.Errorf("check: %v", first)
	}
	if status, last := curl(start.Verifier+"/status/TEST-001", "", ""); status != http.StatusOK || last["verification_status"] != "failing" || last["ticket_id"] != "TEST-001" {
		t.Errorf("status: %d %v", status, last)
	}
	// V7: "look the rest up on the ticket".
	if status, _ := curl(start.Verifier+"/verify", `{"ticket_id": "TEST-001"}`, form); status != http.StatusBadRequest {
		t.Errorf("without a branch: %d", status)
	}
	if status, ticket := curl(start.URL+"/tickets", `{"id": "TEST-002", "title": "With its branch", "branch_name": "work", "repo_url": "`+project+`", "acceptance_criteria": {"checks": [
	  {"id": "ac-1", "type": "file_exists", "verify": {"path": "test.txt"}}]}}`, "application/json"); status != http.StatusCreated {
		t.Errorf("create: %d %v", status, ticket)
	}
	if status, result := curl(start.Verifier+"/verify", `{"ticket_id": "TEST-002"}`, form); status != http.StatusOK || result["verification_status"] != "passing" {
		t.Errorf("the ticket alone: %d %v", status, result)
	}
	if status, history := curl(start.Verifier+"/verify/TEST-001/history", "", ""); status != http.StatusOK || len(history["verifications"].([]any)) != 1 {
		t.Errorf("history: %d %v", status, history)
	}
	if status, _ := curl(start.Verifier+"/verify", `{"ticket_id": "NONE"}`, form); status != http.StatusNotFound {
		t.Errorf("an unknown ticket: %d", status)
	}
	if status, problem := curl(start.Verifier+"/tickets", "", ""); status != http.StatusNotFound || !strings.Contains(problem["hint"].(string), "POST /verify") {
		t.Errorf("another path: %d %v", status, problem)
	}
	if status, verification := curl(start.URL+"/tickets/TEST-001/verification", "", ""); status != http.StatusOK || len(verification["verification_log"].([]any)) != 1 {
		t.Errorf("GET /tickets/:id/verification: %d %v", status, verification)
	}
	if !api.VerifierOnly("/verify") || api.VerifierOnly("/v1/runs") {
		t.Error("the paths of the verifier")
	}
	if _, err := os.Stat(filepath.Join(project, ".git", "worktrees")); err == nil {
		t.Error("the repository has a work tree of the verifier")
	}
}
