package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestStatuses(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	body := func(kind, code, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"code":%q,"message":%q}}`, kind, code, message)
	}
	tests := []struct {
		name      string
		answer    http.HandlerFunc
		code      abi.Code
		permanent bool
		retryMs   int64
	}{
		{"429 seconds", status(429, body("rate_limit_error", "", "slow down"), "Retry-After", "7"), abi.Unavailable, false, 7000},
		{"429 fraction", status(429, body("rate_limit_error", "", "slow down"), "Retry-After", "0.5"), abi.Unavailable, false, 500},
		{"429 ms first", status(429, "{}", "Retry-After", "7", "retry-after-ms", "1234"), abi.Unavailable, false, 1234},
		{"429 date", status(429, "{}", "Retry-After", now.Add(90*time.Second).Format(http.TimeFormat)), abi.Unavailable, false, 90_000},
		{"429 past date", status(429, "{}", "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)), abi.Unavailable, false, 0},
		{"429 nonsense", status(429, "{}", "Retry-After", "soon"), abi.Unavailable, false, 0},
		{"429 no money", status(429, body("insufficient_quota", "insufficient_quota", "You exceeded your current quota")), abi.Denied, true, 0},
		{"500", status(500, "oops"), abi.Unavailable, false, 0},
		{"502 html", status(502, "<html>bad gateway</html>"), abi.Unavailable, false, 0},
		{"503 with pause", status(503, "{}", "Retry-After", "3"), abi.Unavailable, false, 3000},
		{"529", status(529, body("overloaded_error", "", "Overloaded")), abi.Unavailable, false, 0},
		{"504", status(504, "{}"), abi.Timeout, false, 0},
		{"401", status(401, body("authentication_error", "", "bad key "+key)), abi.Denied, true, 0},
		{"403", status(403, body("permission_error", "", "no")), abi.Denied, true, 0},
		{"402", status(402, "{}"), abi.Denied, true, 0},
		{"404", status(404, body("not_found_error", "model_not_found", "no such model")), abi.NotFound, true, 0},
		{"400 context", status(400, body("invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens")), abi.Limit, true, 0},
		{"400 prompt", status(400, body("invalid_request_error", "", "prompt is too long: 210000 tokens > 200000 maximum")), abi.Limit, true, 0},
		{"500 context", status(500, body("server_error", "", "the request exceeds the available context size of 4096 tokens")), abi.Limit, true, 0},
		{"400 policy", status(400, body("invalid_request_error", "content_policy_violation", "Your request was rejected by our safety system")), abi.Denied, true, 0},
		{"403 moderation", status(403, body("", "", "Your chosen model requires moderation and your input was flagged")), abi.Denied, true, 0},
		{"413", status(413, body("request_too_large", "", "too large")), abi.Limit, true, 0},
		{"400", status(400, body("invalid_request_error", "", "messages: wrong order")), abi.BadFields, true, 0},
		{"302", status(302, "", "Location", "http://elsewhere.invalid/"), abi.Denied, true, 0},
	}
	for _, tt := range tests {
		for _, kind := range []string{"openai", "anthropic"} {
			t.Run(kind+" "+tt.name, func(t *testing.T) {
				f := newFake(t, tt.answer)
				config := llm.Config{
					Default: "p/some-model", Clock: func() time.Time { return now },
					Providers: []llm.Provider{{Name: "p", Kind: kind, BaseURL: f.URL + "/v1", KeyEnv: "KEY"}},
					Env:       env("KEY", key),
				}
				_, err := open(t, config).Turn(t.Context(), ask("hi"), nil)
				e := asError(t, err)
				if e.Code != tt.code || e.Permanent != tt.permanent || e.RetryAfterMs != tt.retryMs {
					t.Errorf("got %+v", e)
				}
				requests := 1
				switch {
				case strings.HasSuffix(tt.name, " context"):
					requests = 2 // the window that the server names leaves less for the reply
				case tt.name == "413":
					requests = 3 // the server is asked for its windows, and again for a shorter reply
				}
				if n := len(f.seen()); n != requests {
					t.Errorf("%d requests were made", n)
				}
				if (e.Code == abi.Limit) != (e.Field == "append") {
					t.Errorf("the field of %s is %q", e.Code, e.Field)
				}
				if strings.Contains(e.Message+e.Hint, key) {
					t.Errorf("the key is in %q", e.Message)
				}
				if !strings.HasPrefix(e.Message, `model "p/some-model": `) {
					t.Errorf("message %q does not name the model", e.Message)
				}
			})
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	partial := chatText("Hel", "stop")[0]
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+partial+"\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	anthropicStart := "message_start\n" + `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`
	tests := []struct {
		name, kind string
		answer     http.HandlerFunc
		code       abi.Code
		says       string
		spent      bool
	}{
		{"connection cut", "openai", cut, abi.Unavailable, "broken stream", true},
		{"ends without finish", "openai", sse(partial), abi.Unavailable, "before the answer was complete", true},
		{"done without finish", "openai", sse(partial, "[DONE]"), abi.Unavailable, "before the answer was complete", true},
		{"truncated JSON", "openai", sse(partial, `{"choices":[{"ind`), abi.Unavailable, "broken stream", true},
		{"not a stream", "openai", status(200, `{malformed`), abi.Unavailable, "application/json", false},
		{"empty answer", "openai", status(200, ``), abi.Unavailable, "application/json", false},
		{"error event", "openai", sse(partial, `{"error":{"type":"server_error","message":"exploded"}}`), abi.Unavailable, "exploded", true},
		{"quota event", "openai", sse(partial, `{"error":{"type":"insufficient_quota","message":"exceeded your current quota"}}`), abi.Denied, "quota", true},
		{"policy event", "openai", sse(partial, `{"error":{"type":"server_error","code":"content_filter","message":"filtered"}}`), abi.Denied, "filtered", true},
		{"error text", "openai", sse(`{"error":"model runner has stopped"}`), abi.Unavailable, "model runner has stopped", false},
		{"cut, counted", "openai", sse(partial, chatUsage), abi.Unavailable, "before the answer was complete", true},
		{"ends without stop", "anthropic", sse(anthropicStart), abi.Unavailable, "before the answer was complete", true},
		{"overloaded", "anthropic", sse(anthropicStart, "error\n"+`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), abi.Unavailable, "Overloaded", true},
		{"window exceeded", "anthropic", sse(anthropicStart,
			"message_delta\n"+`{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":3}}`,
			"message_stop\n"+`{"type":"message_stop"}`), abi.Limit, "context window", true},
		{"truncated JSON", "anthropic", sse(anthropicStart, "content_block_start\n"+`{"type":"content_`), abi.Unavailable, "broken stream", true},
		{"block out of nowhere", "anthropic", sse(anthropicStart, "content_block_delta\n"+`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}`), abi.Unavailable, "block 3", true},
		{"not a stream", "anthropic", status(200, `{malformed`), abi.Unavailable, "application/json", false},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.name, func(t *testing.T) {
			f := newFake(t, tt.answer)
			m := open(t, llm.Config{
				Default: "p/m", Env: env(),
				Providers: []llm.Provider{{Name: "p", Kind: tt.kind, BaseURL: f.URL + "/v1"}},
			})
			reply, err := m.Turn(t.Context(), ask("hi"), nil)
			e := asError(t, err)
			if e.Code != tt.code || !strings.Contains(e.Message, tt.says) {
				t.Errorf("got %+v", e)
			}
			if (reply.Usage.InputTokens > 0) != tt.spent {
				t.Errorf("usage beside the error is %+v", reply.Usage)
			}
		})
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	m := open(t, llm.Config{Env: env("OLLAMA_HOST", address, "OPENAI_API_KEY", key)})
	for _, model := range []string{"auto", "ollama/llama3"} {
		turn := ask("hi")
		turn.Model = model
		_, err := m.Turn(t.Context(), turn, nil)
		e := asError(t, err)
		if e.Code != abi.Unavailable || e.Permanent || !strings.Contains(e.Hint, address) {
			t.Errorf("%s: got %+v", model, e)
		}
	}
}

func TestCancelAndLimitsEndATurnAtOnce(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, 10)
	hang := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+chatText("Hel", "")[0]+"\n\n")
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
	defer close(release)
	f := newFake(t, hang)
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		_, err := openAI(t, f).Turn(ctx, ask("hi"), nil)
		if e := asError(t, err); e.Code != abi.Cancelled {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := openAI(t, f).Turn(ctx, ask("hi"), nil)
		if e := asError(t, err); e.Code != abi.Timeout {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("silence", func(t *testing.T) {
		m := openAI(t, f, func(c *llm.Config) { c.Stall = 50 * time.Millisecond })
		_, err := m.Turn(t.Context(), ask("hi"), nil)
		if e := asError(t, err); e.Code != abi.Timeout || !strings.Contains(e.Message, "sent nothing for 50ms") {
			t.Errorf("got %+v", e)
		}
	})
}

func TestRedirectsDoNotCarryTheKey(t *testing.T) {
	other := newFake(t, chat("stolen"))
	for _, kind := range []string{"openai", "anthropic"} {
		f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		})
		m := open(t, llm.Config{
			Default: "p/m", Env: env("KEY", key),
			Providers: []llm.Provider{{Name: "p", Kind: kind, BaseURL: f.URL + "/v1", KeyEnv: "KEY"}},
		})
		_, err := m.Turn(t.Context(), ask("hi"), nil)
		if e := asError(t, err); e.Code != abi.Denied || !e.Permanent {
			t.Errorf("%s: got %+v", kind, e)
		}
	}
	if n := len(other.seen()); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
}

func TestErrorsDoNotLeadToTheRequest(t *testing.T) {
	_, err := openAI(t, newFake(t, status(401, "{}"))).Turn(t.Context(), ask("hi"), nil)
	if errors.Unwrap(err) != nil {
		t.Errorf("%T unwraps to %T, whose request has the key", err, errors.Unwrap(err))
	}
}

func TestAnEndlessErrorBodyIsCut(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
				return
			}
		}
	})
	_, err := openAI(t, f).Turn(t.Context(), ask("hi"), nil)
	if e := asError(t, err); e.Code != abi.Unavailable || len(e.Message) > 2000 {
		t.Errorf("got code %s and %d bytes", e.Code, len(e.Message))
	}
}

func TestCountsThatCannotBeAreBounded(t *testing.T) {
	f := newFake(t, sse(append(chatText("x", "stop"), `{"choices":[],"usage":{"prompt_tokens":-1000000,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":99999}}}`)...))
	reply, err := openAI(t, f).Turn(t.Context(), ask("hi"), nil)
	// A count that cannot be is none: the input is estimated, and nothing of it was cached.
	if u := reply.Usage; err != nil || u.InputTokens <= 0 || u.CostUSD != (float64(u.InputTokens)*2.5+5*10)/1e6 {
		t.Errorf("usage is %+v, %v", reply.Usage, err)
	}
}

// TestCountsBeyondAllModelsAreBounded: what servers and plugins count leaves room for sums, whatever
// form it has.
func TestCountsBeyondAllModelsAreBounded(t *testing.T) {
	for text, want := range map[string]int64{
		"9223372036854775797": wire.MaxCount, "1e300": wire.MaxCount, "1e999": wire.MaxCount, `"9223372036854775807"`: wire.MaxCount, "1099511627775": 1<<40 - 1, "7.0": 7,
	} {
		f := newFake(t, sse(append(chatText("x", "stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":`+text+`}}`)...))
		reply, err := openAI(t, f).Turn(t.Context(), ask("hi"), nil)
		if u := reply.Usage; err != nil || u.InputTokens != 10 || u.OutputTokens != want {
			t.Errorf("%s: usage is %+v, %v", text, reply.Usage, err)
		}
	}
}
