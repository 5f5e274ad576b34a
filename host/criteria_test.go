package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// A hostLog keeps what a host logs.
type hostLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *hostLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *hostLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *hostLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// updates returns the data of the events ticket:update of a host, oldest first.
func updates(t *testing.T, h *host.Host) (list []map[string]any) {
	t.Helper()
	events, err := h.Runtime().Events("ticket:update", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		var data map[string]any
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

// The success criteria of S003 that are about the agent's loop. Those about schema, API and
// verifier are TestTicketColumns, TestSpecVerifierPort and TestEachCheck.
func TestSpecSuccessCriteriaS003(t *testing.T) {
	for _, c := range []struct {
		criterion string
		writes    []string // of each attempt
		log       []string
		status    string
		pull      bool
	}{
		{"Agent runs verify loop: Logs show 'Attempt 1/3', 'Attempt 2/3', etc.", []string{"red", "green"}, []string{"[T-1] Attempt 1/3", "[T-1] Attempt 2/3"}, "done passing", true},
		{"Passing verification creates PR: PR created only when all checks pass", []string{"green"}, []string{"[T-1] Attempt 1/3"}, "done passing", true},
		{"Failing verification escalates: Ticket marked blocked after 3 failures", []string{"red", "blue", "black"}, []string{"[T-1] Attempt 1/3", "[T-1] Attempt 2/3", "[T-1] Attempt 3/3"}, "blocked failing", false},
	} {
		t.Run(strings.SplitN(c.criterion, ":", 2)[0], func(t *testing.T) {
			ws, _ := project(t)
			newModelServer(t, writes(func(n int, _ string) []answer { return []answer{fileOf("a.txt", c.writes[n-1]+"\n")} }))
			log := &hostLog{}
			h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: withoutReview, Logger: log.logger()})
			must(t, h, "ticket/create", wantsGreen, nil)
			forge(t, h, ws)
			got := ticketOf(t, h, "T-1").Ticket
			if got.State+" "+got.VerificationStatus != c.status || (got.PullRequest != nil) != c.pull {
				t.Errorf("%s: the ticket %+v", c.criterion, got)
			}
			text := log.String()
			for n := range 4 {
				line := fmt.Sprintf("[T-1] Attempt %d/3", n+1)
				if want := slices.Contains(c.log, line); strings.Count(text, line) != map[bool]int{true: 1}[want] {
					t.Errorf("%s: the log has %q %d times:\n%s", c.criterion, line, strings.Count(text, line), text)
				}
			}
			// "Log attempt": each is in the ticket's log too, and a blocked ticket has the
			// escalation: {timestamp, action, reason, last_result}.
			want := len(c.writes)
			if !c.pull {
				want++
				var entry struct {
					Timestamp, Action, Reason string
					LastResult                json.RawMessage `json:"last_result"`
				}
				err := json.Unmarshal(got.Log[len(got.Log)-1], &entry)
				if err != nil || entry.Timestamp == "" || entry.Action != "escalated" || entry.Reason != "max_verification_attempts" || len(entry.LastResult) < 3 {
					t.Errorf("%s: the log ends with %s, %v", c.criterion, got.Log[len(got.Log)-1], err)
				}
			}
			if len(got.Log) != want {
				t.Errorf("%s: %d entries in the log, want %d", c.criterion, len(got.Log), want)
			}
		})
	}
}

// S000, step 4: a rejection is announced with {retry: true, reason: 'sentinel_rejection',
// feedbackProvided: true}, the last one with {reason: 'sentinel_max_retries'}, and the log has
// "[SENTINEL] Ticket ... requeued for retry (attempt 1)" and "[SENTINEL] Ticket ... on hold
// after 3 rejections". X17: the reviewer keeps these names on the wire.
func TestSpecRejectionIsAnnounced(t *testing.T) {
	ws, _ := project(t)
	newModelServer(t, func(r chatRequest) answer {
		if isReview(r) {
			return answer{text: rejects}
		}
		return writes(func(int, string) []answer { return []answer{fileOf("a.txt", "green\n")} })(r)
	})
	log := &hostLog{}
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: map[string]string{"tickets.reviewDelay": "0s", "tickets.review": "on"}, Logger: log.logger()})
	must(t, h, "ticket/create", wantsGreen, nil)
	for range 3 {
		forge(t, h, ws)
		review(t, h, ws, nil)
	}
	var states []string
	for _, data := range updates(t, h) {
		switch {
		case data["reason"] == "sentinel_rejection":
			if data["state"] != "ready" || data["retry"] != true || data["feedbackProvided"] != true || data["verification_status"] != "sentinel_rejected" || data["retryAfter"] == nil {
				t.Errorf("a rejection: %v", data)
			}
			states = append(states, "ready")
		case data["reason"] == "sentinel_max_retries":
			if data["state"] != "on_hold" || data["verification_status"] != "sentinel_rejected" {
				t.Errorf("the last rejection: %v", data)
			}
			states = append(states, "on_hold")
		case data["state"] == "sentinel_failed":
			states = append(states, "sentinel_failed")
		}
	}
	if got := strings.Join(states, " "); got != "sentinel_failed ready sentinel_failed ready sentinel_failed on_hold" {
		t.Errorf("events: %s", got)
	}
	text := log.String()
	for _, line := range []string{"[SENTINEL] Ticket T-1 requeued for retry (attempt 1)", "[SENTINEL] Ticket T-1 requeued for retry (attempt 2)", "level=WARN msg=\"[SENTINEL] Ticket T-1 on hold after 3 rejections"} {
		if strings.Count(text, line) != 1 {
			t.Errorf("the log has %q %d times:\n%s", line, strings.Count(text, line), text)
		}
	}
	// X17: "call the S000 gate reviewer in code and UI, keep the wire names".
	var raw struct{ Ticket map[string]any }
	must(t, h, "ticket/get", `{"id": "T-1"}`, &raw)
	feedback, _ := raw.Ticket["sentinel_feedback"].(map[string]any)
	if raw.Ticket["verification_status"] != "sentinel_rejected" || raw.Ticket["hold_code"] != "sentinel_max_retries" || len(feedback["feedback_for_agent"].([]any)) != 2 {
		t.Errorf("the ticket: %v", raw.Ticket)
	}
	var attempts struct {
		Attempts []struct{ Role, Outcome string }
	}
	must(t, h, "ticket/attempts", `{"id": "T-1"}`, &attempts)
	for i, a := range attempts.Attempts {
		if want := []string{"worker completed", "reviewer rejected"}[i%2]; a.Role+" "+a.Outcome != want {
			t.Errorf("attempt %d: %+v, want %s", i+1, a, want)
		}
	}
}

// S001: "tail -f swarm-engine.log | grep -E '(retry|Retry|RETRY)'": each decision is a line of
// the log with category, attempt, maximum, decision and delay.
func TestSpecRetryDecisionsAreLogged(t *testing.T) {
	log := &hostLog{}
	h := open(t, host.Options{Logger: log.logger()})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "Test retry logic", "description": "This should fail and retry"}`, nil)
	must(t, h, "ticket/claim", `{"id": "T-1"}`, nil)
	must(t, h, "ticket/fail", `{"id": "T-1", "error": "HTTP 503 Service Unavailable"}`, nil)
	must(t, h, "ticket/fail", `{"id": "T-none", "error": "x"}`, nil)
	text := log.String()
	for _, line := range []string{`"Retry decision for T-1" errorCategory=api currentAttempt=1 maxRetries=7 shouldRetry=true nextDelayMs=1000`, `level=ERROR msg="Ticket T-none not found for retry decision"`} {
		if !strings.Contains(text, line) {
			t.Errorf("the log has no %s:\n%s", line, text)
		}
	}
}
