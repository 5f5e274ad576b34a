package llm_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
)

// answers dispatches the turns of an examination.
func answers(word, tool, schema http.HandlerFunc) http.HandlerFunc {
	list := []http.HandlerFunc{word, tool, schema}
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			status(200, `{"data":[{"id":"m","context_length":32000}]}`)(w, r)
			return
		}
		n++
		list[min(n, len(list))-1](w, r)
	}
}

func TestExamine(t *testing.T) {
	call := deltas("tool_calls", `{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"note","arguments":"{\"text\":\"ready\"}"}}]}`)
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
		err    string
	}{
		"all":                     {answers(chat("ready"), call, chat(`{"days":7}`)), "text, tools, structured output; ", ""},
		"text alone":              {answers(chat("ready"), chat("I cannot."), chat("seven")), "text, no tools, no structured output; ", ""},
		"no reply":                {answers(status(401, `{"error":{"message":"wrong key"}}`), call, call), "no text, no tools, no structured output", "wrong key"},
		"tools by the text alone": {answers(chat("ready"), status(400, `{"error":{"message":"m does not support tools"}}`), chat(`{"days":7}`)), "text, no tools, structured output; ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, tt.answer)
			m := open(t, llm.Config{Env: env(), Providers: []llm.Provider{{Name: "p", BaseURL: f.URL + "/v1"}}})
			x := m.Examine(t.Context(), "p")
			if !strings.HasPrefix(x.String(), tt.want) || (x.Err != nil) != (tt.err != "") || x.Err != nil && !strings.Contains(x.Err.Error(), tt.err) {
				t.Errorf("%s, %v", x, x.Err)
			}
			if x.Err == nil && (!strings.Contains(x.String(), "window 32000") || x.Usage.InputTokens == 0 || x.Provider != "p" || x.Model != "m") {
				t.Errorf("%s: %+v", x, x)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	m := open(t, llm.Config{
		Env: env("OPENAI_API_KEY", key), Default: "openai/gpt-4o", Capacity: llm.Capacity{Small: []string{"own/a", "openai"}},
		Providers: []llm.Provider{{Name: "own", BaseURL: "http://127.0.0.1:1"}}, Models: []llm.Model{{Provider: "own", Name: "b"}, {Name: "c"}},
	})
	if got := m.References(); !slices.Equal(got, []string{"openai", "openai/gpt-4o", "own", "own/a", "own/b"}) {
		t.Errorf("%q", got)
	}
}
