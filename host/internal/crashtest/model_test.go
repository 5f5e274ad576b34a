//go:build linux

package crashtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A modelServer speaks OpenAI's chat completions, as a stream. What it answers
// depends on the conversation alone; it outlives every host.
type modelServer struct {
	*httptest.Server

	mu    sync.Mutex
	turns []turn
}

// A turn is one request: the prompt and the number of answers that the
// model had given to it identify the turn, the key identifies the life.
type turn struct {
	prompt string
	number int
	life   string
}

type chatRequest struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func newModelServer(t *testing.T) *modelServer {
	s := &modelServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *modelServer) answer(w http.ResponseWriter, req *http.Request) {
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
	now := turn{life: strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer key-of-")}
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			now.prompt = text(m.Content)
		case "assistant":
			now.number++
		}
	}
	s.mu.Lock()
	s.turns = append(s.turns, now)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	chunk(w, map[string]any{"role": "assistant", "content": ""}, nil)
	http.NewResponseController(w).Flush()
	time.Sleep(15 * time.Millisecond) // so that kills meet an answer half given
	pass := 0
	if _, err := fmt.Sscanf(now.prompt[strings.Index(now.prompt, "iteration"):], "iteration %d", &pass); err != nil {
		panic(fmt.Sprintf("prompt %q: %v", now.prompt, err))
	}
	calls := []string{
		fmt.Sprintf(`{"name":"code_shell_execute","arguments":"{\"command\":\"sh ./act.sh tool 0.02 %d\"}"}`, pass),
		`{"name":"data_create","arguments":"{\"collection\":\"marks\",\"data\":{\"from\":\"tool\"}}"}`,
	}
	if now.number < len(calls) {
		chunk(w, map[string]any{"tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprint("call_", now.number), "type": "function", "function": json.RawMessage(calls[now.number]),
		}}}, nil)
		chunk(w, map[string]any{}, "tool_calls")
	} else {
		chunk(w, map[string]any{"content": "All is done."}, nil)
		chunk(w, map[string]any{}, "stop")
	}
	fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`+"\n\ndata: [DONE]\n\n")
}

func chunk(w http.ResponseWriter, delta map[string]any, finish any) {
	b, err := json.Marshal(map[string]any{
		"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(w, "data: %s\n\n", b) // a host that was killed does not read it
}

// text reads a message's content, a string or a list of parts.
func text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts) // neither: no text, which no prompt is
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// asked returns the turns so far.
func (s *modelServer) asked() []turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]turn(nil), s.turns...)
}
