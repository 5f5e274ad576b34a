package llm_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const key = "sk-test-0123456789abcdef"

// fake is an HTTP server whose answers are given in order; the last one stays.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	requests []recorded
	answers  []http.HandlerFunc
}

type recorded struct {
	path   string
	header http.Header
	body   map[string]any
	raw    string
	query  string
}

func newFake(t *testing.T, answers ...http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{answers: answers}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(raw, &body)
		f.mu.Lock()
		f.requests = append(f.requests, recorded{r.URL.Path, r.Header.Clone(), body, string(raw), r.URL.RawQuery})
		answer := f.answers[min(len(f.requests), len(f.answers))-1]
		f.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) seen() []recorded {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// env returns a Config.Env of the given variables alone.
func env(pairs ...string) func(string) string {
	vars := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		vars[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return vars[name] }
}

// openAI opens Models on a fake that stands for OPENAI_BASE_URL.
func openAI(t *testing.T, f *fake, change ...func(*llm.Config)) *llm.Models {
	t.Helper()
	config := llm.Config{Env: env("OPENAI_BASE_URL", f.URL+"/v1", "OPENAI_API_KEY", key), Default: "openai/gpt-4o"}
	for _, c := range change {
		c(&config)
	}
	return open(t, config)
}

func anthropicModels(t *testing.T, f *fake) *llm.Models {
	t.Helper()
	return open(t, llm.Config{Env: env("ANTHROPIC_BASE_URL", f.URL, "ANTHROPIC_API_KEY", key), Default: "anthropic/claude-sonnet-5-5"})
}

func open(t *testing.T, config llm.Config) *llm.Models {
	t.Helper()
	m, err := llm.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sse answers with a stream of events: each a data line, or "event\ndata".
func sse(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			if name, data, ok := strings.Cut(event, "\n"); ok {
				_, _ = io.WriteString(w, "event: "+name+"\ndata: "+data+"\n\n")
			} else {
				_, _ = io.WriteString(w, "data: "+event+"\n\n")
			}
		}
	}
}

func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func chatText(text, finish string) []string {
	quoted, _ := json.Marshal(text)
	return []string{
		`{"id":"1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"role":"assistant","content":` + string(quoted) + `}}]}`,
		`{"id":"1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}`,
	}
}

const chatUsage = `{"id":"1","object":"chat.completion.chunk","model":"gpt-4o-2024-08-06","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40}}}`

// chat answers with text as a chat completion.
func chat(text string) http.HandlerFunc {
	return sse(append(chatText(text, "stop"), chatUsage, "[DONE]")...)
}

func ask(text string) sentinels.Turn {
	return sentinels.Turn{Messages: []sentinels.Message{{Role: "user", Content: text}}}
}

func withTools(turn sentinels.Turn, names ...string) sentinels.Turn {
	for _, name := range names {
		turn.Tools = append(turn.Tools, sentinels.ToolSpec{
			Name: name, Description: "does " + name,
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		})
	}
	return turn
}

func asError(t *testing.T, err error) *abi.Error {
	t.Helper()
	e := abi.As(err)
	if e == nil {
		t.Fatalf("got %v, want an *abi.Error", err)
	}
	return e
}
