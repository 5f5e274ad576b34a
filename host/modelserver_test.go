package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A modelServer is an HTTP server that speaks OpenAI's chat completions, as a
// stream, and answers from a script.
type modelServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []chatRequest
	// refuse, if set, may answer the n-th request, from 1, itself and then returns true.
	refuse func(n int, w http.ResponseWriter) bool
}

type chatRequest struct {
	Model     string `json:"model"`
	MaxTokens int64  `json:"max_tokens"`
	Messages  []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// text returns the text of the newest message of a role.
func (r chatRequest) text(role string) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role != role {
			continue
		}
		var s string
		if json.Unmarshal(r.Messages[i].Content, &s) == nil {
			return s
		}
		return string(r.Messages[i].Content)
	}
	return ""
}

// task returns the text of the oldest message of the user.
func (r chatRequest) task() string {
	for i := range r.Messages {
		if r.Messages[i].Role == "user" {
			r.Messages = r.Messages[:i+1]
			return r.text("user")
		}
	}
	return ""
}

// answers counts the tool results of the conversation.
func (r chatRequest) answers() int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	return n
}

// An answer is what the script lets the model say: text, or a tool call.
type answer struct {
	text string
	tool string // as the model sees it: code_read
	args map[string]any
}

func newModelServer(t testing.TB, script func(r chatRequest) answer) *modelServer {
	t.Helper()
	s := &modelServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"object":"list","data":[{"id":"scripted","object":"model","created":1,"owned_by":"test"}]}`)
			return
		}
		var r chatRequest
		if err := json.NewDecoder(req.Body).Decode(&r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, r)
		n := len(s.asked)
		s.mu.Unlock()
		if s.refuse != nil && s.refuse(n, w) {
			return
		}
		stream(w, script(r))
	}))
	t.Cleanup(s.Close)
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "test-key-not-a-secret")
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"} {
		t.Setenv(name, "")
	}
	return s
}

func (s *modelServer) turns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func stream(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta map[string]any, finish any) {
		b, _ := json.Marshal(map[string]any{
			"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	finish := "stop"
	if a.tool != "" {
		args, _ := json.Marshal(a.args)
		chunk(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": a.tool, "arguments": string(args)},
		}}}, nil)
		finish = "tool_calls"
	} else {
		chunk(map[string]any{"role": "assistant", "content": a.text}, nil)
	}
	chunk(map[string]any{}, finish)
	fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`+"\n\n")
	fmt.Fprint(w, "data: [DONE]\n\n")
}
