package llm_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const quotedCall = `<tool_call>{"name":"code_read","arguments":{"path":"x"}}</tool_call>`

// TestThinkingIsNeitherActedOnNorAnAnswer has models write a tool call in their thinking, in each
// form that servers send it in.
func TestThinkingIsNeitherActedOnNorAnAnswer(t *testing.T) {
	content := func(finish, text string) http.HandlerFunc {
		return sse(append(chatText(text, finish), chatUsage, "[DONE]")...)
	}
	quoted, _ := json.Marshal("I could " + quotedCall)
	part := `[{"type":"thinking","thinking":[{"type":"text","text":` + string(quoted) + `}]},{"type":"text","text":"yes"}]`
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		text   string
	}{
		"a block":                  {content("stop", "<think>I could "+quotedCall+"</think>\n\nyes"), "yes"},
		"only a closing tag":       {content("stop", "I could "+quotedCall+"\n</think>\n\nyes"), "yes"},
		"cut by length":            {content("length", "<think>I could "+quotedCall), ""},
		"text before it":           {content("stop", "Let me see. <think>I could "+quotedCall+"</think>yes"), "Let me see. yes"},
		"a second block":           {content("stop", "<think>hm</think>yes<think>I could "+quotedCall+"</think>"), "yes"},
		"two ends":                 {content("stop", "<think>hm</think>I could "+quotedCall+"</think>yes"), "yes"},
		"another tag":              {content("stop", "[THINK]I could "+quotedCall+"[/THINK]yes"), "yes"},
		"a list of parts":          {deltas("stop", `{"content":`+part+`}`), "yes"},
		"a list in one piece":      {wholeMessage("stop", `{"role":"assistant","content":`+part+`}`), "yes"},
		"a member":                 {deltas("stop", `{"reasoning_content":`+string(quoted)+`}`, `{"content":"yes"}`), "yes"},
		"a member and nothing":     {deltas("length", `{"reasoning":`+string(quoted)+`}`), ""},
		"a block in the wrong one": {deltas("stop", `{"reasoning_content":`+string(quoted)+`}`, `{"content":"</think>yes"}`), "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			m := openAI(t, newFake(t, tt.answer))
			reply, err := m.Turn(t.Context(), withTools(ask("x"), "code/read"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(reply.ToolCalls) != 0 || reply.Text != tt.text {
				t.Errorf("calls %v, text %q, want %q", reply.ToolCalls, reply.Text, tt.text)
			}
			if !strings.Contains(reply.Reasoning, "I could "+quotedCall) {
				t.Errorf("reasoning %q", reply.Reasoning)
			}
		})
	}
}

// TestTextAboutThinkingIsText: a tag that is quoted, and data, are what they are.
func TestTextAboutThinkingIsText(t *testing.T) {
	for _, text := range []string{"Write `<think>` and `</think>` around it.", `{"html":"a <think>b</think>"}`, "I think so."} {
		reply, err := openAI(t, newFake(t, chat(text))).Turn(t.Context(), ask("x"), nil)
		if err != nil || reply.Text != text || reply.Reasoning != "" {
			t.Errorf("%q: %+v, %v", text, reply, err)
		}
	}
}

// TestCountingNeverSaysLess: what servers report of tokens, and what they leave out.
func TestCountingNeverSaysLess(t *testing.T) {
	text := func(usage string, more ...string) http.HandlerFunc {
		events := []string{`{"choices":[{"index":0,"delta":{"content":"ok"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"` + strings.Join(more, "") + `}]}`}
		if usage != "" {
			events = append(events, `{"choices":[],`+usage+`}`)
		}
		return sse(append(events, "[DONE]")...)
	}
	long := strings.Repeat("some thought ", 3800) // 49,400 bytes
	claudeUsage := func(start, end string) http.HandlerFunc {
		return sse(`message_start`+"\n"+`{"type":"message_start","message":{"model":"m","usage":`+start+`}}`,
			"content_block_start\n"+`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}`,
			"message_delta\n"+`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+end+`}`, "message_stop\n"+`{"type":"message_stop"}`)
	}
	for name, tt := range map[string]struct {
		answer        http.HandlerFunc
		claude        bool
		input, output int64 // the least
		estimated     bool
	}{
		"thinking outside of completion_tokens, by the total": {text(`"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":50110,"completion_tokens_details":{"reasoning_tokens":50000}}`), false, 100, 50010, false},
		"likewise, without a total":                           {text(`"usage":{"prompt_tokens":100,"completion_tokens":10,"completion_tokens_details":{"reasoning_tokens":50000}}`), false, 100, 50010, false},
		"thinking in completion_tokens":                       {text(`"usage":{"prompt_tokens":100,"completion_tokens":500,"total_tokens":600,"completion_tokens_details":{"reasoning_tokens":400}}`), false, 100, 500, false},
		"Groq: x_groq":                                        {text(`"x_groq":{"usage":{"prompt_tokens":100,"completion_tokens":20}}`), false, 100, 20, false},
		"Kimi: usage of the choice":                           {text("", `,"usage":{"prompt_tokens":100,"completion_tokens":20}`), false, 100, 20, false},
		"a last report that is empty":                         {text(`"usage":{"prompt_tokens":0,"completion_tokens":0}`, `,"usage":{"prompt_tokens":100,"completion_tokens":20}`), false, 100, 20, false},
		"absent, with much thinking":                          {deltasWithout(`{"reasoning_content":"` + long + `"}`), false, 1, 12000, true},
		"less than half of it":                                {deltas("stop", `{"reasoning_content":"`+long+`"}`), false, 100, 12000, true},
		"GLM: input at the end":                               {claudeUsage(`{"input_tokens":0,"output_tokens":0}`, `{"input_tokens":900,"cache_read_input_tokens":50,"output_tokens":30}`), true, 950, 30, false},
		"GLM: absent":                                         {claudeUsage(`{"input_tokens":0,"output_tokens":0}`, `{}`), true, 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, tt.answer)
			var report llm.Report
			observe := func(_ context.Context, r llm.Report) { report = r }
			config := llm.Config{Env: env("OPENAI_BASE_URL", f.URL), Default: "openai/m", Observe: observe}
			if tt.claude {
				config.Env, config.Default = env("ANTHROPIC_BASE_URL", f.URL), "anthropic/m"
			}
			reply, err := open(t, config).Turn(t.Context(), ask("x"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if u := reply.Usage; u.InputTokens < tt.input || u.OutputTokens < tt.output || !tt.estimated && (u.InputTokens > tt.input || u.OutputTokens > tt.output) || report.Estimated != tt.estimated {
				t.Errorf("usage %+v, estimated %v", u, report.Estimated)
			}
		})
	}
}

// deltasWithout is deltas of a server that counts nothing.
func deltasWithout(list ...string) http.HandlerFunc {
	var events []string
	for _, d := range list {
		events = append(events, `{"choices":[{"index":0,"delta":`+d+`}]}`)
	}
	return sse(append(events, `{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}`, "[DONE]")...)
}

// TestABrokenStreamIsCounted: what came of it was paid for, also where no usage had come.
func TestABrokenStreamIsCounted(t *testing.T) {
	f := newFake(t, sse(`{"choices":[{"index":0,"delta":{"reasoning_content":"`+strings.Repeat("hm ", 4000)+`"}}]}`))
	reply, err := openAI(t, f).Turn(t.Context(), ask("x"), nil)
	if abi.CodeOf(err) != abi.Unavailable || reply.Usage.OutputTokens < 3000 || reply.Usage.InputTokens == 0 {
		t.Errorf("usage %+v, error %v", reply.Usage, err)
	}
}
