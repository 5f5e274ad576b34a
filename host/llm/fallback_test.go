package llm_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
)

// TestFallback: the error of a turn names the configured model that takes its place, after a rate
// limit, an overload or an outage.
func TestFallback(t *testing.T) {
	fallback := []string{"lab/b", "none", "lab/c"}
	message := func(code int, text string) http.HandlerFunc { return status(code, `{"error":{"message":"`+text+`"}}`) }
	for name, tt := range map[string]struct {
		model, want string
		answer      http.HandlerFunc
	}{
		"rate limit":            {"lab/a", "lab/b", message(429, "rate limit reached for a")},
		"overload":              {"lab/a", "lab/b", message(529, "overloaded_error")},
		"an outage":             {"lab/a", "lab/b", message(502, "bad gateway")},
		"a stream that is cut":  {"lab/a", "lab/b", sse(`{"choices":[{"index":0,"delta":{"content":"x"}}]}`)},
		"nothing listens":       {"down/a", "lab/b", message(200, "")},
		"behind the first":      {"lab/b", "lab/c", message(503, "x")}, // none is not configured
		"behind the last":       {"lab/c", "", message(503, "x")},
		"bad input":             {"lab/a", "", message(400, "messages is wrong")},
		"a wrong key":           {"lab/a", "", message(401, "no such key")},
		"no such model":         {"lab/a", "", message(404, "no such model")},
		"too long":              {"lab/a", "", message(400, "maximum context length is 100 tokens")},
		"refused":               {"lab/a", "", message(400, "flagged by the content policy")},
		"no credit":             {"lab/a", "", message(402, "Insufficient Balance")},
		"a broken call":         {"lab/a", "", message(400, "tool_use_failed")},
		"a server of something": {"lab/a", "", typed("text/html", "<html>")},
	} {
		f := newFake(t, tt.answer)
		m := open(t, llm.Config{Env: env(), Fallback: fallback, Providers: []llm.Provider{
			{Name: "lab", BaseURL: f.URL + "/v1"}, {Name: "down", BaseURL: "http://127.0.0.1:1/v1"},
		}, Models: []llm.Model{{Name: "a", Context: 200}}})
		turn := ask("x")
		turn.Model = tt.model
		_, err := m.Turn(t.Context(), turn, nil)
		if e := asError(t, err); e.Fallback != tt.want {
			t.Errorf("%s: %+v, want the fallback %q", name, e, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := newFake(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	m := open(t, llm.Config{Env: env(), Fallback: fallback, Providers: []llm.Provider{{Name: "lab", BaseURL: f.URL + "/v1"}}, Default: "lab/a"})
	if _, err := m.Turn(ctx, ask("x"), nil); asError(t, err).Fallback != "" {
		t.Errorf("cancelled: %v", err)
	}
	var wrong *llm.Mistake
	if _, err := llm.Open(llm.Config{Env: env(), Fallback: []string{"acme/m"}}); !errors.As(err, &wrong) || wrong.Key != "fallback" {
		t.Errorf("an unknown provider: %v", err)
	}
}
