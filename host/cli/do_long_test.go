package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// A windowModel is a server whose model has a window: it refuses requests above it, and those
// whose messages are not in the order that real servers want.
type windowModel struct {
	*httptest.Server
	t      *testing.T
	window int                      // tokens
	refuse func(tokens int) string  // text of a refusal
	list   string                   // of the list of models, beside the id
	turn   func(n int) string       // line of the answer to turn n, from 0, without summaries
	seen   func(n int, body string) // called with the request of each turn that is answered; may be nil

	mu                        sync.Mutex
	turns, summaries, refused int
	largest                   int
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    string          `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
}

func (m *windowModel) start(t *testing.T) map[string]string {
	m.t = t
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return map[string]string{
		"OPENAI_BASE_URL": m.URL + "/v1", "OPENAI_API_KEY": "k", "USER": "ann",
		"HOME": t.TempDir(), "PATH": os.Getenv("PATH"),
	}
}

func (m *windowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprintf(w, `{"object": "list", "data": [{"id": "parrot", "object": "model"%s}]}`, m.list)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var request struct {
		MaxTokens int `json:"max_tokens"`
		Messages  []chatMessage
	}
	if err := json.Unmarshal(body, &request); err != nil {
		m.t.Error(err)
	}
	if problem := wrongOrder(request.Messages); problem != "" {
		m.t.Errorf("%s:\n%.3000s", problem, body)
	}
	tokens := len(body) / 4
	if tokens+request.MaxTokens > m.window {
		m.refused++
		text, _ := json.Marshal(m.refuse(tokens))
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error": {"message": %s, "type": "invalid_request_error", "code": "context_length_exceeded"}}`, text)
		return
	}
	m.largest = max(m.largest, tokens)
	last := request.Messages[len(request.Messages)-1].Content
	var line string
	if strings.Contains(last, "Write a summary") {
		m.summaries++
		line = fmt.Sprintf("SUMMARY %d: read on", m.summaries)
	} else {
		if m.seen != nil {
			m.seen(m.turns, string(body))
		}
		line = m.turn(m.turns)
		m.turns++
	}
	chunk := &strings.Builder{}
	reply(&lineWriter{w, chunk}, line)
	_, _ = io.WriteString(w, strings.Replace(chunk.String(), `"prompt_tokens":100`, fmt.Sprintf(`"prompt_tokens":%d`, tokens), 1))
}

// A lineWriter keeps the body of an answer.
type lineWriter struct {
	http.ResponseWriter
	body *strings.Builder
}

func (w *lineWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// wrongOrder returns what strict servers refuse: a result without its call, a call without
// its results, a conversation that does not begin with the user.
func wrongOrder(messages []chatMessage) string {
	open := map[string]bool{}
	if len(messages) > 0 && messages[0].Role == "system" {
		messages = messages[1:]
	}
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Sprintf("message %d is the result of no call", i)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("message %d comes before the results of %v", i, open)
		}
		if i == 0 && m.Role != "user" {
			return "the conversation begins with " + m.Role
		}
		var calls []struct{ ID string }
		_ = json.Unmarshal(m.ToolCalls, &calls)
		for _, c := range calls {
			open[c.ID] = true
		}
	}
	if n := len(messages); n > 0 && messages[n-1].Role == "assistant" {
		return "nothing is asked"
	}
	return ""
}

// unsaid is a refusal that does not name the window.
func unsaid(int) string { return "prompt is too long" }

// readOn reads a part of a file in each turn, and writes one at first.
func readOn(turns int) func(int) string {
	return func(n int) string {
		switch {
		case n == 0:
			return toolCall("code_write", map[string]any{"path": "made.txt", "content": "made\n"})
		case n == 1:
			return toolCall("code_read", map[string]any{"path": "missing.txt"})
		case n < turns:
			return toolCall("code_read", map[string]any{"path": "a.txt", "offset": n, "limit": 40})
		}
		return "all is read"
	}
}

// longFile has lines that are read in parts.
var longFile = map[string]string{"a.txt": strings.Repeat("a line of the file that is read in parts, over and over\n", 200)}

// TestLongTasksGoOn checks that a task whose conversation outgrows the window of the model
// gets to its end, whether the window is listed, named in a refusal or unknown.
func TestLongTasksGoOn(t *testing.T) {
	for name, tt := range map[string]struct {
		list    string
		refuse  func(int) string
		refused int // at most
		more    []string
	}{
		"listed": {list: `, "max_model_len": 8192`, refuse: unsaid},
		"named": {refused: 2, refuse: func(tokens int) string {
			return fmt.Sprintf("This model's maximum context length is 8192 tokens. However, your messages resulted in %d tokens.", tokens)
		}},
		"unknown": {refused: 8, refuse: unsaid},
	} {
		t.Run(name, func(t *testing.T) {
			var first, behind string
			marked := false
			m := &windowModel{window: 8192, list: tt.list, refuse: tt.refuse, turn: readOn(40)}
			if name == "unknown" {
				m.window += 8192 // the limit of the reply when no window is known
			}
			m.seen = func(n int, body string) {
				if n == 1 {
					first = body
				}
				if n == 39 {
					behind = body
				}
				marked = marked || strings.Contains(body, "was left out, because")
			}
			env, dir := m.start(t), folder(t, longFile)
			out, code := without(t, dir, env, "do", "Read THE WHOLE a.txt", "--yolo", "--no-check")
			if code != 0 || !strings.Contains(out, "all is read") || m.turns != 41 {
				t.Fatalf("exit code %d after %d turns\n%s", code, m.turns, out)
			}
			if m.refused > tt.refused || tt.refused > 0 && m.refused == 0 {
				t.Errorf("%d requests were refused", m.refused)
			}
			for _, want := range []string{"THE WHOLE a.txt", "You are a software engineer"} {
				if !strings.Contains(behind, want) || !strings.Contains(first, want) {
					t.Errorf("%q is lost:\n%s", want, behind)
				}
			}
			if !marked || !strings.Contains(out, "the conversation nears the window of the model and was shortened before turn") {
				t.Errorf("no mark in the conversation or no line in the output\n%s", out)
			}
			if m.summaries > 0 {
				for _, want := range []string{"SUMMARY", `- made.txt`, `code/read {\"path\":\"missing.txt\"}: Error (not_found)`} {
					if !strings.Contains(strings.ReplaceAll(behind, `\\\"`, `\"`), want) {
						t.Errorf("%q is lost:\n%s", want, behind)
					}
				}
			}
			t.Logf("%d summaries, %d refused, the largest has %d tokens", m.summaries, m.refused, m.largest)
			trace, code := without(t, dir, env, "trace", "do", "-v")
			for _, want := range []string{"shortened: messages ", "a line of the file"} {
				if code != 0 || !strings.Contains(trace, want) {
					t.Errorf("exit code %d, no %q in the trace", code, want)
				}
			}
			if n := strings.Count(trace, "a summary, beside the conversation"); n != m.summaries {
				t.Errorf("%d summaries in the trace, %d were made", n, m.summaries)
			}
		})
	}
}

// TestLargeToolCall checks that a file of 280 KB, which a model writes in one call, is written
// whole, and that the task goes on.
func TestLargeToolCall(t *testing.T) {
	text := strings.Repeat("line of text\n", 22_000)
	m := &windowModel{window: 1 << 20, refuse: unsaid, turn: func(n int) string {
		return []string{toolCall("code_write", map[string]any{"path": "b.txt", "content": text}), "written"}[n]
	}}
	dir := folder(t, nil)
	out, code := without(t, dir, m.start(t), "do", "Write b.txt", "--yolo", "--no-check")
	if code != 0 || !strings.Contains(out, "written") || fileText(t, dir, "b.txt") != text {
		t.Fatalf("exit code %d\n%s", code, out)
	}
}

// TestSummaryIsInTheBudget checks that summaries count as calls of the budget, which holds in
// the middle of a shortened conversation, and that nothing is shortened with overflow fail.
func TestSummaryIsInTheBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		context, budget string
		code            int
		want            string
	}{
		// The 41 replies alone are within it.
		"budget": {`{"add": false}`, `{"calls": 41}`, app.ExitTimedOut, "budget.calls"},
		"all":    {`{"add": false}`, `{"calls": 100}`, 0, "all is read"},
		"fail":   {`{"add": false, "overflow": "fail"}`, `{}`, app.ExitFailed, "context window exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &windowModel{window: 8192, list: `, "max_model_len": 8192`, refuse: unsaid, turn: readOn(40)}
			env := m.start(t)
			dir := project(t, `{"id": "s", "steps": [{"type": "llm", "model": "openai/parrot", "prompt": "Read a.txt", "tools": ["code/read", "code/write"], "maxTurns": 60,
				"context": `+tt.context+`, "outputTo": "r"}], "budget": `+tt.budget+`}`)
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(longFile["a.txt"]), 0o600); err != nil {
				t.Fatal(err)
			}
			out, code := without(t, dir, env, "run", "s.json", "-o", "json")
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Fatalf("exit code %d, want %d and %q\n%.5000s", code, tt.code, tt.want, out)
			}
			if name == "fail" {
				if m.summaries > 0 || m.refused == 0 {
					t.Errorf("%d summaries, %d refused", m.summaries, m.refused)
				}
				return
			}
			if n := m.turns + m.summaries; m.summaries == 0 || !strings.Contains(out, fmt.Sprintf(`"calls": %d`, n)) || name == "budget" && n != 41 {
				t.Errorf("%d turns and %d summaries, the usage is another:\n%s", m.turns, m.summaries, out)
			}
		})
	}
}

// TestContinueAfterOverflow checks that a task whose first request is too long ends with a
// reason, and that it can be continued.
func TestContinueAfterOverflow(t *testing.T) {
	m := &windowModel{window: 8192 + 8192, refuse: unsaid, turn: func(int) string { return "done now" }}
	env, dir := m.start(t), folder(t, nil)
	out, code := without(t, dir, env, "do", strings.Repeat("a long task ", 8000), "--yolo", "--no-check")
	if code != app.ExitFailed || !strings.Contains(out, "context window exceeded") || !strings.Contains(out, "--continue") {
		t.Fatalf("exit code %d\n%.3000s", code, out)
	}
	if out, code = without(t, dir, env, "do", "--continue", "a short one", "--yolo", "--no-check"); code != 0 || !strings.Contains(out, "done now") {
		t.Errorf("exit code %d\n%.3000s", code, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); err == nil {
		t.Error("a file was made")
	}
}
