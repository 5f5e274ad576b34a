package lesson

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Name is what the scripted model is called in replies and cassettes, so that
// its answers are not mistaken for those of a real one.
const Name = "scripted"

// A Model decides what the model says next. It is called for one turn at a
// time.
type Model func(Asked) Answer

// Asked is what the model gets to see in one turn.
type Asked struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// Text returns the newest message of a role: system, user, assistant or tool.
func (a Asked) Text(role string) string {
	for i := len(a.Messages) - 1; i >= 0; i-- {
		if a.Messages[i].Role != role {
			continue
		}
		var s string
		if json.Unmarshal(a.Messages[i].Content, &s) == nil {
			return s
		}
		return string(a.Messages[i].Content)
	}
	return ""
}

// Results counts what tools have answered in this conversation.
func (a Asked) Results() int {
	n := 0
	for _, m := range a.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	return n
}

// An Answer is one turn of the model: text, or the call of a tool.
type Answer struct {
	Text string
	Tool string // as a model sees the name: code_read for code/read
	Args map[string]any
}

// Serve starts a server that speaks OpenAI's chat completions and answers as
// model does, and makes it the only model that the environment names. It ends
// with the test.
func Serve(t *testing.T, model Model) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","created":1,"owned_by":"examples"}]}`, Name)
			return
		}
		var raw json.RawMessage
		var asked Asked
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(raw, &asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		stream(w, asked.Results(), len(raw), model(asked))
	}))
	t.Cleanup(server.Close)
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "no-key-is-needed")
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"} {
		t.Setenv(name, "")
	}
}

// stream writes an answer the way servers do: as events, the usage in the last.
// Tokens are counted as four bytes each, about what English text has.
func stream(w http.ResponseWriter, results, asked int, a Answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(v map[string]any) {
		v["id"], v["object"], v["created"], v["model"] = "answer", "chat.completion.chunk", 1, Name
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // maps of plain values
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
	choice := func(delta map[string]any, finish any) {
		event(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	said, finish := len(a.Text), "stop"
	delta := map[string]any{"role": "assistant", "content": a.Text}
	if a.Tool != "" {
		args, err := json.Marshal(a.Args)
		if err != nil {
			panic(err)
		}
		said, finish = said+len(args), "tool_calls"
		delta["tool_calls"] = []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", results+1), "type": "function",
			"function": map[string]any{"name": a.Tool, "arguments": string(args)},
		}}
	}
	choice(delta, nil)
	choice(map[string]any{}, finish)
	in, out := asked/4, said/4+1
	event(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}
