package llm_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// known opens Models whose provider has the address of a hosted one, and whose requests go to f.
func known(t *testing.T, f *fake, base string, change ...func(*llm.Config)) *llm.Models {
	t.Helper()
	config := llm.Config{
		Default: "p/m", Env: env(), Providers: []llm.Provider{{Name: "p", BaseURL: base}},
		HTTPClient: &http.Client{Transport: redirected(f.URL)},
	}
	for _, c := range change {
		c(&config)
	}
	return open(t, config)
}

// redirected sends all requests to one server.
type redirected string

func (to redirected) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(string(to), "http://")
	return http.DefaultTransport.RoundTrip(r)
}

// TestFinishReasons: a reply that was cut fails, whatever the server calls it.
func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]struct {
		code   abi.Code
		finish string
	}{
		"error": {abi.Unavailable, ""}, "network_error": {abi.Unavailable, ""}, "abort": {abi.Unavailable, ""}, "insufficient_system_resource": {abi.Unavailable, ""},
		"MALFORMED_FUNCTION_CALL": {abi.Unavailable, ""}, "SAFETY": {abi.Denied, ""}, "sensitive": {abi.Denied, ""}, "content_filter": {abi.Denied, ""},
		"model_context_window_exceeded": {abi.Limit, ""}, "MAX_TOKENS": {"", "length"}, "model_length": {"", "length"}, "eos": {"", "stop"}, "invented": {"", "stop"},
	} {
		f := newFake(t, sse(append(chatText("half a te", reason), chatUsage, "[DONE]")...))
		reply, err := openAI(t, f).Turn(t.Context(), ask("x"), nil)
		if want.code != "" {
			if e := abi.As(err); e == nil || e.Code != want.code || e.Permanent != (want.code != abi.Unavailable) || reply.Text != "" || reply.Usage.OutputTokens == 0 {
				t.Errorf("%s: %+v, %v", reason, reply, err)
			}
		} else if err != nil || reply.Finish != want.finish {
			t.Errorf("%s: %+v, %v", reason, reply, err)
		}
	}
}

// TestALimitThatIsTooLargeIsLoweredOnce: the server says how much it accepts, and a later turn
// and its quote begin there. So does a smaller window.
func TestALimitThatIsTooLargeIsLoweredOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		message string
		want    int64
	}{
		"named":      {"Invalid max_tokens value, the valid range of max_tokens is [1, 4096]", 4096},
		"of OpenAI":  {"max_tokens is too large: 8192. This model supports at most 2,048 completion tokens, whereas you provided 8192.", 2048},
		"the window": {"This model's maximum context length is 8000 tokens. However, you requested 8192 output tokens and your prompt contains at least 8 input tokens, for a total of at least 8200 tokens.", 2000},
	} {
		t.Run(name, func(t *testing.T) {
			raw, _ := json.Marshal(map[string]any{"error": map[string]any{"message": tt.message}})
			f := newFake(t, status(400, string(raw)), chat("ok"))
			var notes []string
			m := openAI(t, f, func(c *llm.Config) {
				c.Default = "openai/small"
				c.Observe = func(_ context.Context, r llm.Report) { notes = append(notes, r.Notes...) }
			})
			for range 2 {
				if _, err := m.Turn(t.Context(), ask("x"), nil); err != nil {
					t.Fatal(err)
				}
			}
			seen := f.turns()
			if len(seen) != 3 || seen[0].body["max_tokens"] != 8192.0 || seen[1].body["max_tokens"] != float64(tt.want) || seen[2].body["max_tokens"] != float64(tt.want) {
				t.Errorf("%d requests, the last with %v, %v", len(seen), seen[len(seen)-1].body["max_tokens"], notes)
			}
			q, err := m.Quote(t.Context(), ask("x"))
			if err != nil || q.Worst.OutputTokens != tt.want || len(notes) == 0 {
				t.Errorf("quote %+v, %v; notes %q", q, err, notes)
			}
		})
	}
}

// TestRefusedMembersAreLeftOut: what a server sends and does not take back is left out from then
// on, and what it must have is there also of another model's replies.
func TestRefusedMembersAreLeftOut(t *testing.T) {
	said := func(message string) sentinels.Turn {
		reply := sentinels.Reply{ToolCalls: []sentinels.ToolCall{{ID: "a", Name: "code/read", Arguments: json.RawMessage(`{}`)}}}
		if message != "" {
			reply.Said = &sentinels.Said{Provider: "p", Model: "m", Protocol: "openai", Message: message}
		}
		return again(withTools(ask("x"), "code/read"), reply)
	}
	const calls = `"tool_calls":[{"id":"a","type":"function","function":{"name":"code_read","arguments":"{}"}}]`
	refusal := `{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning' is unsupported)]"}}`
	for name, tt := range map[string]struct {
		base, message string
		answers       []http.HandlerFunc
		has, hasNot   string // in the last request
	}{
		"learned":           {"https://api.example.com/v1", `{"role":"assistant","content":null,"reasoning":"hm",` + calls + `}`, []http.HandlerFunc{status(400, refusal), chat("ok")}, calls, `"reasoning"`},
		"known of Groq":     {"https://api.groq.com/openai/v1", `{"role":"assistant","content":null,"reasoning_content":"hm",` + calls + `}`, []http.HandlerFunc{chat("ok")}, calls, "reasoning_content"},
		"DeepSeek wants it": {"https://api.deepseek.com", "", []http.HandlerFunc{status(400, `{"error":{"message":"The `+"`reasoning_content`"+` in the thinking mode must be passed back to the API."}}`), chat("ok")}, `"reasoning_content":" "`, "nothing"},
		"Kimi wants it":     {"https://api.moonshot.ai/v1", "", []http.HandlerFunc{status(400, `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"}}`), chat("ok")}, `"reasoning_content":" "`, "nothing"},
		"Kimi has it":       {"https://api.moonshot.ai/v1", `{"role":"assistant","content":null,"reasoning_content":"hm",` + calls + `}`, []http.HandlerFunc{chat("ok")}, `"reasoning_content":"hm"`, `" "`},
		"Gemini wants one":  {"https://generativelanguage.googleapis.com/v1beta/openai", "", []http.HandlerFunc{chat("ok")}, `"extra_content":{"google":{"thought_signature":`, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, tt.answers...)
			m := known(t, f, tt.base)
			for range 2 {
				if _, err := m.Turn(t.Context(), said(tt.message), nil); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(f.turns()); n != len(tt.answers)+1 {
				t.Errorf("%d requests", n)
			}
			last := f.turns()[len(f.turns())-1]
			if raw := last.raw; !strings.Contains(raw, tt.has) || strings.Contains(raw, tt.hasNot) {
				t.Errorf("sent %s", raw)
			}
		})
	}
}

// turns are the requests that are turns.
func (f *fake) turns() (list []recorded) {
	for _, r := range f.seen() {
		if r.body != nil {
			list = append(list, r)
		}
	}
	return list
}

// TestBaseURLWithAQuery: the path goes before the query, as Azure wants it.
func TestBaseURLWithAQuery(t *testing.T) {
	for kind, want := range map[string]string{llm.KindOpenAI: "/openai/v1/chat/completions", llm.KindAnthropic: "/openai/v1/messages"} {
		f := newFake(t, chat("ok"))
		m := open(t, llm.Config{Env: env(), Default: "azure/m", Providers: []llm.Provider{{Name: "azure", Kind: kind, BaseURL: f.URL + "/openai/v1/?api-version=preview"}}})
		_, _ = m.Turn(t.Context(), ask("x"), nil)
		if r := f.turns()[0]; r.path != want || r.query != "api-version=preview" {
			t.Errorf("%s: asked %s with %q", kind, r.path, r.query)
		}
	}
}
