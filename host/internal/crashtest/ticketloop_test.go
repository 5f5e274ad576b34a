//go:build linux

package crashtest_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTicketLoop: the whole loop of a ticket, "sentinel_failed, ready with feedback,
// in_progress, verified, done, with a kill -9 at every state". Each answer holds over the
// crash that follows it.
func TestTicketLoop(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	m := &market{t: t, url: "http://127.0.0.1:" + port, port: port, dir: t.TempDir()}
	project := m.dir
	commit := func(branch, file string) {
		t.Helper()
		if file != "" {
			if err := os.WriteFile(filepath.Join(project, file), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"init", "-q", "-b", branch}, {"add", "--", "*.txt"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "work"}} {
			cmd := exec.Command("git", args...)
			cmd.Dir = project
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
	}
	commit("work", "first.txt")
	server := m.serve()
	crash := func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		server = m.serve()
	}
	type state struct {
		State          string `json:"state"`
		Verification   string `json:"verification_status"`
		RetryCount     int    `json:"retry_count"`
		RejectionCount int    `json:"rejection_count"`
		Feedback       *struct {
			Items []string `json:"feedback_for_agent"`
		} `json:"sentinel_feedback"`
		Lease *struct {
			Token  uint64 `json:"token"`
			Holder string `json:"holder"`
		} `json:"lease"`
	}
	get := func() (s state) {
		t.Helper()
		if status := m.ask("GET", "/tickets/loop", nil, &s); status != 200 {
			t.Fatalf("get: %d", status)
		}
		return s
	}
	ask := func(path string, body map[string]any) {
		t.Helper()
		if status := m.ask("POST", path, body, nil); status/100 != 2 {
			t.Fatalf("%s: %d", path, status)
		}
		crash()
	}
	claim := func() uint64 {
		t.Helper()
		var s state
		for s.Lease == nil { // until the delay is over
			if status := m.ask("POST", "/tickets/claim", map[string]any{"agent_id": "worker", "lease_ms": 60_000}, &s); status != 200 {
				t.Fatalf("claim: %d", status)
			}
		}
		crash()
		if now := get(); now.State != "in_progress" || now.Lease == nil || now.Lease.Token != s.Lease.Token || now.Lease.Holder != "worker" {
			t.Fatalf("after the claim: %+v", now)
		}
		return s.Lease.Token
	}
	ask("/tickets", map[string]any{"id": "loop", "title": "loop", "branch_name": "work", "acceptance_criteria": map[string]any{
		"checks": []any{map[string]any{"id": "a", "type": "file_exists", "verify": map[string]any{"path": "second.txt"}}},
	}})
	token := claim()
	ask("/verify", map[string]any{"ticket_id": "loop"})
	if s := get(); s.State != "in_progress" || s.Verification != "failing" {
		t.Fatalf("after a verification that fails: %+v", s)
	}
	ask("/tickets/loop/reject", map[string]any{"token": token, "sentinel_feedback": map[string]any{"feedback_for_agent": []string{"write second.txt", "and commit it"}}})
	s := get()
	if s.State != "ready" || s.Verification != "sentinel_rejected" || s.RejectionCount != 1 || s.Feedback == nil || len(s.Feedback.Items) != 2 || s.Lease != nil {
		t.Fatalf("after the rejection: %+v", s)
	}
	if status := m.ask("POST", "/tickets/loop/complete", map[string]any{"token": token}, nil); status != 409 {
		t.Errorf("a report of the first claim: %d", status)
	}
	token = claim()
	if s := get(); s.Feedback == nil || s.Feedback.Items[0] != "write second.txt" {
		t.Errorf("feedback of the second attempt: %+v", s)
	}
	commit("work", "second.txt")
	// Killed while it verifies: it gives no result, and may be repeated.
	go m.ask("POST", "/verify", map[string]any{"ticket_id": "loop"}, nil)
	crash()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s := get()
		if s.State != "in_progress" {
			t.Fatalf("after a crash in a verification: %+v", s)
		}
		if s.Verification != "running" { // the new process has seen to it
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the verification stays running")
		}
	}
	ask("/verify", map[string]any{"ticket_id": "loop", "token": token})
	if s := get(); s.Verification != "passing" {
		t.Fatalf("after the verification: %+v", s)
	}
	ask("/tickets/loop/complete", map[string]any{"token": token})
	if s := get(); s.State != "done" || s.Verification != "passing" || s.RetryCount != 1 {
		t.Errorf("at the end: %+v", s)
	}
	if left, _ := filepath.Glob(filepath.Join(project, ".cache", "sentinel", "verify", "*", "checkouts", "*")); len(left) > 0 {
		t.Errorf("checkouts are left: %q", left)
	}
	_ = server.Process.Signal(os.Interrupt)
	_ = server.Wait()
}
