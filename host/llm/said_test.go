package llm_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// strictServer answers the first request with an answer, and refuses a second one whose
// message at index 1 is not exactly want.
type strictServer struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // the messages at index 1
	body []string
}

func newStrictServer(t *testing.T, answer http.HandlerFunc, last http.HandlerFunc, want string) *strictServer {
	t.Helper()
	s := &strictServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var body struct {
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.body = append(s.body, string(raw))
		if len(body.Messages) < 2 {
			answer(w, r)
			return
		}
		s.got = append(s.got, string(body.Messages[1]))
		if want != "" && s.got[len(s.got)-1] != want {
			status(400, `{"error":{"message":"the message is not the one that was sent","type":"invalid_request_error"}}`)(w, r)
			return
		}
		last(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// again makes the second turn of a tool loop: the reply, and the results of its calls.
func again(turn sentinels.Turn, reply sentinels.Reply) sentinels.Turn {
	turn.Messages = append(turn.Messages[:len(turn.Messages):len(turn.Messages)],
		sentinels.Message{Role: "assistant", Content: reply.Text, ToolCalls: reply.ToolCalls, Said: reply.Said})
	for _, call := range reply.ToolCalls {
		turn.Messages = append(turn.Messages, sentinels.Message{Role: "tool", ToolCallID: call.ID, Name: call.Name, Content: "done"})
	}
	if len(reply.ToolCalls) == 0 {
		turn.Messages = append(turn.Messages, sentinels.Message{Role: "user", Content: "go on"})
	}
	return turn
}

func deltas(finish string, list ...string) http.HandlerFunc {
	var events []string
	for _, d := range list {
		events = append(events, `{"model":"m","choices":[{"index":0,"delta":`+d+`}]}`)
	}
	return sse(append(events, `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`, chatUsage, "[DONE]")...)
}

func wholeMessage(finish, message string) http.HandlerFunc {
	return status(200, `{"model":"m","choices":[{"index":0,"message":`+message+`,"finish_reason":"`+finish+`"}],"usage":{"prompt_tokens":100,"completion_tokens":50}}`)
}

// TestAReplyGoesBackAsItWasSaid has strict servers refuse a conversation in which the message
// of the model is not byte for byte the one that they have sent. TestProviders has the replies of
// each provider; these are others.
func TestAReplyGoesBackAsItWasSaid(t *testing.T) {
	for _, tt := range []struct {
		name, reasoning, text string
		answer                http.HandlerFunc
		want                  string
	}{
		{
			name: "Kimi in one piece", reasoning: "hm", text: "I look.",
			answer: wholeMessage("tool_calls", `{"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[{"type":"function","id":"functions.code_read:0","function":{"arguments":"{}","name":"code_read"}}],"vendor":{"b":1,"a":[1e2,null]}}`),
			want:   `{"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[{"type":"function","id":"functions.code_read:0","function":{"arguments":"{}","name":"code_read"}}],"vendor":{"b":1,"a":[1e2,null]}}`,
		},
		{
			name: "OpenRouter: reasoning_details", reasoning: "hm so", text: "ok", answer: deltas("stop",
				`{"role":"assistant","content":"","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","index":0,"format":"f"}]}`,
				`{"content":"","reasoning":" so","reasoning_details":[{"type":"reasoning.text","text":" so","index":0,"format":"f"}]}`,
				`{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"sig","index":0,"format":"f"}]}`,
				`{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"ZZ","index":1}]}`, `{"content":"ok"}`),
			want: `{"role":"assistant","content":"ok","reasoning":"hm so","reasoning_details":[{"type":"reasoning.text","text":"hm so","index":0,"format":"f","signature":"sig"},{"type":"reasoning.encrypted","data":"ZZ","index":1}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStrictServer(t, tt.answer, chat("done"), tt.want)
			m := open(t, llm.Config{Env: env(), Default: "local/m", Providers: []llm.Provider{{Name: "local", BaseURL: s.URL}}})
			turn := withTools(ask("read x"), "code/read")
			reply, err := m.Turn(t.Context(), turn, nil)
			if err != nil {
				t.Fatal(err)
			}
			if reply.Reasoning != tt.reasoning || reply.Text != tt.text {
				t.Errorf("reasoning %q, text %q, want %q and %q", reply.Reasoning, reply.Text, tt.reasoning, tt.text)
			}
			raw, err := json.Marshal(reply) // as a journal and a cassette keep it
			if err != nil {
				t.Fatal(err)
			}
			reply = sentinels.Reply{}
			if err := json.Unmarshal(raw, &reply); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Turn(t.Context(), again(turn, reply), nil); err != nil {
				t.Errorf("the second turn: %v\n(-want +got):\n%s", err, cmp.Diff(tt.want, strings.Join(s.got, "\n")))
			}
		})
	}
}

// TestBlocksGoBackAsTheyWereSaid is the same for the messages protocol: order, signatures,
// blocks that we do not know, text between calls.
func TestBlocksGoBackAsTheyWereSaid(t *testing.T) {
	event := func(text string) string {
		var e struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(text), &e)
		return e.Type + "\n" + text
	}
	start := func(i, block string) string {
		return event(`{"type":"content_block_start","index":` + i + `,"content_block":` + block + `}`)
	}
	delta := func(i, d string) string {
		return event(`{"type":"content_block_delta","index":` + i + `,"delta":` + d + `}`)
	}
	stream := sse(append(claude(
		start("0", `{"type":"thinking","thinking":"","signature":""}`), delta("0", `{"type":"thinking_delta","thinking":"so <"}`), delta("0", `{"type":"thinking_delta","thinking":" so"}`),
		delta("0", `{"type":"signature_delta","signature":"EqQB=="}`),
		start("1", `{"type":"redacted_thinking","data":"xyz"}`),
		start("2", `{"type":"text","text":""}`), delta("2", `{"type":"text_delta","text":"I look. "}`),
		start("3", `{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}`), delta("3", `{"type":"input_json_delta","partial_json":"{\"q\": \"a\"}"}`),
		start("4", `{"type":"web_search_tool_result","tool_use_id":"srv","content":[{"url":"u","encrypted_content":"e"}]}`),
		start("5", `{"type":"tool_use","id":"t1","name":"code_read","input":{},"caller":{"type":"direct"}}`), delta("5", `{"type":"input_json_delta","partial_json":"{\"path\":"}`), delta("5", `{"type":"input_json_delta","partial_json":" \"<x>\"}"}`),
		start("6", `{"type":"text","text":""}`),
	), claudeEnd("tool_use")...)...)
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"so < so","signature":"EqQB=="},{"type":"redacted_thinking","data":"xyz"},{"type":"text","text":"I look. "},` +
		`{"type":"server_tool_use","id":"srv","name":"web_search","input":{"q":"a"}},{"type":"web_search_tool_result","tool_use_id":"srv","content":[{"url":"u","encrypted_content":"e"}]},` +
		`{"type":"tool_use","id":"t1","name":"code_read","input":{"path":"<x>"},"caller":{"type":"direct"}}]}`
	whole := `{"type":"message","model":"m","stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":9},"content":[{"type":"thinking","thinking":"so"},{"type":"tool_use","id":"t1","name":"code_read","input":{"path":"x"}}]}`
	for name, c := range map[string]struct {
		answer          http.HandlerFunc
		want, reasoning string
	}{
		"stream":    {stream, want, "so < so"},
		"one piece": {status(200, whole), `{"role":"assistant","content":[{"type":"thinking","thinking":"so"},{"type":"tool_use","id":"t1","name":"code_read","input":{"path":"x"}}]}`, "so"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStrictServer(t, c.answer, sse(append(claude(), claudeEnd("end_turn")...)...), c.want)
			m := open(t, llm.Config{Env: env("ANTHROPIC_BASE_URL", s.URL), Default: "anthropic/m"})
			turn := withTools(ask("read x"), "code/read")
			reply, err := m.Turn(t.Context(), turn, nil)
			if err != nil {
				t.Fatal(err)
			}
			if reply.Reasoning != c.reasoning || len(reply.ToolCalls) != 1 {
				t.Errorf("reply %+v", reply)
			}
			if _, err := m.Turn(t.Context(), again(turn, reply), nil); err != nil {
				t.Errorf("the second turn: %v\n(-want +got):\n%s", err, cmp.Diff(c.want, strings.Join(s.got, "\n")))
			}
		})
	}
}

// TestThinkingThatIsRefused: the signature of a block is that of the conversation, which may have been
// shortened since. The blocks are left out then.
func TestThinkingThatIsRefused(t *testing.T) {
	for _, message := range []string{
		"messages.1.content.24: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
		"messages.1.content.0: Invalid `signature` in `thinking` block",
	} {
		raw, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": message}})
		f := newFake(t, status(400, string(raw)), sse(append(claude(), claudeEnd("end_turn")...)...))
		turn := again(withTools(ask("x"), "code/read"), sentinels.Reply{
			ToolCalls: []sentinels.ToolCall{{ID: "a", Name: "code/read", Arguments: json.RawMessage(`{}`)}},
			Said: &sentinels.Said{Provider: "anthropic", Model: "claude-sonnet-5-5", Protocol: "anthropic",
				Message: `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"z"},{"type":"tool_use","id":"a","name":"code_read","input":{}}]}`},
		})
		if _, err := anthropicModels(t, f).Turn(t.Context(), turn, nil); err != nil {
			t.Fatal(err)
		}
		if first, second := f.turns()[0].raw, f.turns()[1].raw; !strings.Contains(first, "redacted") || strings.Contains(second, "thinking") || !strings.Contains(second, `"id":"a"`) {
			t.Errorf("%s: sent %s, then %s", message, first, second)
		}
	}
}

// TestAnotherModelGetsTheKnownPart: what one model has added is not for another one, also of the same
// provider.
func TestAnotherModelGetsTheKnownPart(t *testing.T) {
	first := newFake(t, deltas("tool_calls", `{"reasoning_content":"hm"}`, `{"content":"I look.","tool_calls":[{"index":0,"id":"a","function":{"name":"code_read","arguments":"{}"},"extra_content":{"x":1}}]}`))
	second := newStrictServer(t, chat("x"), chat("done"),
		`{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"code_read","arguments":"{}"}}]}`)
	third := newStrictServer(t, chat("x"), sse(append(claude(), claudeEnd("end_turn")...)...),
		`{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"code_read","input":{}}]}`)
	m := open(t, llm.Config{Env: env(), Providers: []llm.Provider{
		{Name: "one", BaseURL: first.URL}, {Name: "two", BaseURL: second.URL}, {Name: "three", Kind: llm.KindAnthropic, BaseURL: third.URL},
	}})
	turn := withTools(ask("read x"), "code/read")
	turn.Model = "one/m"
	reply, err := m.Turn(t.Context(), turn, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := again(turn, reply)
	if _, err := m.Turn(t.Context(), next, nil); err != nil || !strings.Contains(first.turns()[1].raw, `"reasoning_content":"hm"`) {
		t.Errorf("the same model: %v, %s", err, first.turns()[1].raw)
	}
	next.Model = "one/m2"
	if _, err := m.Turn(t.Context(), next, nil); err != nil || strings.Contains(first.turns()[2].raw, "hm") {
		t.Errorf("another model of the provider: %v, %s", err, first.turns()[2].raw)
	}
	for _, model := range []string{"two/m", "three/m"} {
		next := again(turn, reply)
		next.Model = model
		if _, err := m.Turn(t.Context(), next, nil); err != nil {
			t.Errorf("%s: %v\n%s%s", model, err, second.got, third.got)
		}
	}
}

// TestAnAssistantMessageAlwaysHasContent: strict servers refuse one without the key.
func TestAnAssistantMessageAlwaysHasContent(t *testing.T) {
	s := newStrictServer(t, chat("x"), chat("x"),
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"code_read","arguments":"{}"}}]}`)
	m := open(t, llm.Config{Env: env("OPENAI_BASE_URL", s.URL), Default: "openai/m"})
	turn := again(withTools(ask("x"), "code/read"), sentinels.Reply{ToolCalls: []sentinels.ToolCall{{ID: "a", Name: "code/read", Arguments: json.RawMessage(`{}`)}}})
	if _, err := m.Turn(t.Context(), turn, nil); err != nil {
		t.Errorf("%v: %s", err, s.got)
	}
}

// TestLargeArgumentsAreNotSaidAgain: of a call whose arguments are left out, the rest goes back.
func TestLargeArgumentsAreNotSaidAgain(t *testing.T) {
	s := newStrictServer(t, deltas("tool_calls", `{"reasoning_content":"hm","tool_calls":[{"index":0,"id":"a","function":{"name":"code_read","arguments":"{\"path\":\"long\"}"},"x":1}]}`), chat("x"),
		`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"code_read","arguments":"left out"},"x":1}]}`)
	m := open(t, llm.Config{Env: env("OPENAI_BASE_URL", s.URL), Default: "openai/m"})
	turn := withTools(ask("x"), "code/read")
	reply, err := m.Turn(t.Context(), turn, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply.ToolCalls[0].Arguments, reply.ToolCalls[0].Size = json.RawMessage(`"left out"`), 15
	if _, err := m.Turn(t.Context(), again(turn, reply), nil); err != nil {
		t.Errorf("%v: %s", err, s.got)
	}
	if bytes.Contains([]byte(s.body[1]), []byte("long")) {
		t.Error("the arguments were sent again")
	}
}
