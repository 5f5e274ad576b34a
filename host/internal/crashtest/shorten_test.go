//go:build linux

package crashtest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A narrowModel has a window of 8,192 tokens, four bytes each. It reads a file in parts, and
// kills the program before it answers the first request with a text.
type narrowModel struct {
	killAt string

	mu               sync.Mutex
	program          *exec.Cmd // that is killed; nil once it was
	turns, summaries int
	requests         []string // that were answered
}

func (m *narrowModel) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"scripted","object":"model","max_model_len":8192}]}`)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	if m.program != nil && strings.Contains(string(body), m.killAt) {
		_ = m.program.Process.Kill() // the test sees whether it was
		m.program = nil
		<-req.Context().Done() // it has no answer
		return
	}
	if len(body)/4 > 8192 {
		http.Error(w, `{"error":{"message":"prompt is too long"}}`, http.StatusBadRequest)
		return
	}
	var r chatRequest
	if err := json.Unmarshal(body, &r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.requests = append(m.requests, string(body))
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case strings.Contains(text(r.Messages[len(r.Messages)-1].Content), "Write a summary"):
		m.summaries++
		chunk(w, map[string]any{"role": "assistant", "content": "half of it is read"}, nil)
		chunk(w, map[string]any{}, "stop")
	case m.turns < 30:
		m.turns++
		chunk(w, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", m.turns), "type": "function",
			"function": map[string]any{"name": "code_read", "arguments": fmt.Sprintf(`{"path":"long.txt","offset":%d,"limit":40}`, m.turns)},
		}}}, nil)
		chunk(w, map[string]any{}, "tool_calls")
	default:
		chunk(w, map[string]any{"role": "assistant", "content": "done"}, nil)
		chunk(w, map[string]any{}, "stop")
	}
	fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":120}}`+"\n\ndata: [DONE]\n\n", len(body)/4)
}

// TestKillWhileShortening kills a task between the shortening of its conversation and the next
// call, and while the summary is written. Continued, it sends what a task that was not killed
// sends: a replay shortens in the same places, and asks for no summary twice.
func TestKillWhileShortening(t *testing.T) {
	run := func(t *testing.T, killAt string) *narrowModel {
		t.Helper()
		m := &narrowModel{killAt: killAt}
		server := httptest.NewServer(m)
		defer server.Close()
		o := doProject(t, map[string]string{"long.txt": strings.Repeat("a line of a file that is read in parts, over and over\n", 200)})
		o.Life = 1
		o.CLI = []string{"do", "Read long.txt", "--yolo", "--no-check", "--workspace", o.Workspace, "--state", filepath.Join(o.Dir, "state")}
		l := command(t, o, server.URL)
		if killAt != "" {
			m.mu.Lock()
			m.program = l
		}
		err := l.Start()
		if killAt != "" {
			m.mu.Unlock()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Wait(); (err != nil) != (killAt != "") {
			t.Fatalf("the program ended with %v", err)
		}
		if killAt != "" {
			if out, code := doVerb(t, o, server.URL, "do", "--continue"); code != 0 || !strings.Contains(out, "done") {
				t.Fatalf("exit code %d\n%s", code, out)
			}
		}
		return m
	}
	want := run(t, "")
	if want.summaries < 1 || want.turns != 30 {
		t.Fatalf("%d summaries, %d turns", want.summaries, want.turns)
	}
	for name, killAt := range map[string]string{"results left out": "was left out, because", "summary under way": "Write a summary", "after the summary": "## Your summary"} {
		t.Run(name, func(t *testing.T) {
			got := run(t, killAt)
			if got.program != nil {
				t.Fatal("the program was not killed")
			}
			if got.summaries != want.summaries || len(got.requests) != len(want.requests) {
				t.Fatalf("%d summaries and %d requests, want %d and %d", got.summaries, len(got.requests), want.summaries, len(want.requests))
			}
			for i := range want.requests {
				if got.requests[i] != want.requests[i] {
					t.Fatalf("request %d\n%s\nwant\n%s", i, got.requests[i], want.requests[i])
				}
			}
		})
	}
}
