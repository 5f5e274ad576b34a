package llm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestWindowOfAServer checks where the size of a window is read from: the list of the server
// in the words of each, or an answer that refuses a request; and that the limit of the
// reply follows it.
func TestWindowOfAServer(t *testing.T) {
	for name, tt := range map[string]struct {
		list   string // what is in the list beside the id
		refuse string // answer to the first turn
		known  int64  // window in the configuration
		want   int64  // inputLimit of the reply
		tokens float64
	}{
		"vLLM":                   {list: `"max_model_len": 8192`, want: 6144, tokens: 8192},
		"OpenRouter":             {list: `"context_length": "65536"`, want: 57344, tokens: 8192},
		"Groq":                   {list: `"context_window": 131072`, want: 122880, tokens: 8192},
		"LM Studio":              {list: `"loaded_context_length": 4096, "max_context_length": 131072`, want: 3072, tokens: 8192},
		"llama.cpp":              {list: `"meta": {"n_ctx_train": 32768, "n_ctx": 16384}`, want: 12288, tokens: 8192},
		"unknown":                {list: `"meta": "text", "context_length": null`, tokens: 8192},
		"refused":                {refuse: "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", want: 6144, tokens: 2048},
		"refused without a size": {refuse: "prompt is too long", want: 6150, tokens: 2049},
		"less than told":         {known: 32768, refuse: "request (9000 tokens) exceeds the available context size (4096 tokens)", want: 3072, tokens: 1024},
		"configured":             {known: 32768, list: `"max_model_len": 8192`, want: 24576, tokens: 8192},
	} {
		t.Run(name, func(t *testing.T) {
			refused := tt.refuse == ""
			var limits []any
			var f *fake
			f = newFake(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					status(200, `{"data": [{"id": "m"`+strings.TrimSuffix(", "+tt.list, ", ")+`}]}`)(w, r)
					return
				}
				seen := f.seen()
				limits = append(limits, seen[len(seen)-1].body["max_tokens"])
				if !refused {
					refused = true
					status(400, `{"error": {"message": "`+tt.refuse+`"}}`)(w, r)
					return
				}
				chat("hi")(w, r)
			})
			m := openAI(t, f, func(c *llm.Config) {
				c.Default = "openai/m"
				if tt.known > 0 {
					c.Models = []llm.Model{{Name: "m", Context: tt.known}}
				}
			})
			for range 2 { // what is learned stays
				reply, err := m.Turn(t.Context(), ask("hi"), nil)
				if err != nil || reply.InputLimit != tt.want {
					t.Fatalf("inputLimit %d, want %d, %v", reply.InputLimit, tt.want, err)
				}
			}
			last := tt.tokens
			if tt.want > 0 && tt.want/3 < int64(last) {
				last = float64(tt.want / 3)
			}
			if got := limits[len(limits)-1]; got != last {
				t.Errorf("the limits of the reply are %v, want %v at last", limits, last)
			}
			if q, err := m.Quote(t.Context(), ask("hi")); err != nil || float64(q.Worst.OutputTokens) != last {
				t.Errorf("the quote has %+v, %v", q, err)
			}
		})
	}
}

// TestWindowTooSmall checks that a turn which no candidate has a window for is the error of a
// conversation that is too long, so that it can be shortened.
func TestWindowTooSmall(t *testing.T) {
	f := newFake(t, chat("hi"))
	m := openAI(t, f, func(c *llm.Config) {
		c.Default, c.Auto, c.Models = "", []string{"openai/m"}, []llm.Model{{Name: "m", Context: 4096}}
	})
	_, err := m.Turn(t.Context(), ask(strings.Repeat("word ", 10_000)), nil)
	if e := asError(t, err); e.Code != abi.Limit || e.Field != "append" || !e.Permanent || len(f.seen()) > 0 || !strings.Contains(e.Message, "; the request has about 125") {
		t.Errorf("%+v", e)
	}
	turn := ask("hi")
	turn.MaxTokens = 1 << 20
	if q, err := m.Quote(t.Context(), turn); err != nil || q.Worst.OutputTokens != 2048 {
		t.Errorf("half of the window is left for a reply that may be longer: %+v, %v", q, err)
	}
}

// TestWhatIsTooLarge checks that the error of a turn that is larger than the window names the
// parts of it with their sizes, the window, and what makes the largest part smaller.
func TestWhatIsTooLarge(t *testing.T) {
	f := newFake(t, status(400, `{"error": {"message": "This model's maximum context length is 4096 tokens"}}`))
	m := openAI(t, f, func(c *llm.Config) { c.Default = "openai/m" })
	long := strings.Repeat("word ", 4000)
	prompt := ask(long)
	tools := ask("hi")
	for range 3 {
		tools.Tools = append(tools.Tools, sentinels.ToolSpec{Name: "a", Description: long})
	}
	tools.Messages = append(tools.Messages, sentinels.Message{Role: "assistant", Content: "yes"}, sentinels.Message{Role: "user", Content: "more than that"})
	system := ask("hi")
	system.System = long
	for name, tt := range map[string]struct {
		turn          sentinels.Turn
		message, hint string
	}{
		"prompt": {prompt, "the request has about 5006 tokens: the prompt about 5006; the window has 4096, of which 1024 are for the reply", "put less into the prompt, or name a model with a larger window"},
		"tools":  {tools, "3 tools about 15049, 3 messages (number 3, of role user, is the largest with about 10) about 23", "name fewer commands in the field tools, or"},
		"system": {system, "the system prompt with the context about 5000, the prompt about 7", "context: false, or"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.Turn(t.Context(), tt.turn, nil)
			e := asError(t, err)
			if e.Code != abi.Limit || e.Field != "append" || !strings.Contains(e.Message, tt.message) || !strings.Contains(e.Hint, tt.hint) || !strings.Contains(e.Hint, "models.known") {
				t.Errorf("%s\n%s", e.Message, e.Hint)
			}
			if q, err := m.Quote(t.Context(), tt.turn); err != nil || q.Excess == 0 {
				t.Errorf("the window is known now: %+v, %v", q, err)
			}
		})
	}
}
