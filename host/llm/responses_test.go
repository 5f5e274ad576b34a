package llm_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Items as the Responses protocol has them.
const (
	reasoningItem = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I read <it>."}],"encrypted_content":"gAAA+/=","status":null}`
	callItem      = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\": \"a&b\"}","call_id":"call_1","name":"code_read"}`
	textItem      = `{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"a < b"}],"role":"assistant"}`
	responseUsage = `{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":150}`
)

// responseEvents is a stream with items, which ends with an event of the given type and the
// members of its response.
func responseEvents(end, members string, items ...string) http.HandlerFunc {
	events := []string{`{"type":"response.created","response":{"object":"response","status":"in_progress","model":"m","output":[]}}`}
	for i, item := range items {
		at, _ := json.Marshal(i)
		var fields struct {
			Content []struct{ Text string }
		}
		_ = json.Unmarshal([]byte(item), &fields)
		for _, c := range fields.Content {
			text, _ := json.Marshal(c.Text)
			events = append(events, `{"type":"response.output_text.delta","output_index":`+string(at)+`,"delta":`+string(text)+`}`)
		}
		events = append(events, `{"type":"response.output_item.done","output_index":`+string(at)+`,"item":`+item+`}`)
	}
	return sse(append(events, `{"type":"response.`+end+`","response":{"object":"response","model":"m-2026",`+members+`}}`)...)
}

func responsesModels(t *testing.T, f *fake) *llm.Models {
	return open(t, llm.Config{
		Env: env(), Default: "p/m", Providers: []llm.Provider{{Name: "p", BaseURL: f.URL + "/v1", Protocol: llm.ProtocolResponses}, {Name: "q", BaseURL: f.URL + "/v1"}},
	})
}

// TestResponses makes a tool loop of three turns. The items of the model go back byte for byte,
// nothing is stored at the server, and another provider gets the known part.
func TestResponses(t *testing.T) {
	whole := `"status":"completed","usage":` + responseUsage
	f := newFake(t,
		responseEvents("completed", whole, reasoningItem, callItem),
		status(404, `{}`), // its list of models
		responseEvents("completed", whole+`,"output":[`+reasoningItem+`,`+textItem+`]`, reasoningItem, textItem),
		responseEvents("completed", whole, textItem),
		chat("known"))
	m := responsesModels(t, f)
	turn := withTools(ask("read x"), "code/read")
	turn.System = "be short"
	reply, err := m.Turn(t.Context(), turn, nil)
	if err != nil || len(reply.ToolCalls) != 1 || reply.Finish != "tools" || reply.Reasoning != "I read <it>." || reply.Text != "" {
		t.Fatalf("%+v, %v", reply, err)
	}
	if call := reply.ToolCalls[0]; call.ID != "call_1" || call.Name != "code/read" || string(call.Arguments) != `{"path": "a&b"}` {
		t.Errorf("call %+v", call)
	}
	if u := reply.Usage; u.InputTokens != 100 || u.OutputTokens != 50 {
		t.Errorf("usage %+v", u)
	}
	if raw, err := json.Marshal(reply); err != nil || json.Unmarshal(raw, &reply) != nil { // as a journal keeps it
		t.Fatal(err)
	}
	turn = again(turn, reply)
	var streamed strings.Builder
	reply, err = m.Turn(t.Context(), turn, func(s string) { streamed.WriteString(s) })
	if err != nil || reply.Text != "a < b" || streamed.String() != reply.Text || reply.Finish != "stop" {
		t.Fatalf("%+v, %v; streamed %q", reply, err, streamed.String())
	}
	turn = again(turn, reply)
	if reply, err = m.Turn(t.Context(), turn, nil); err != nil || reply.Said != nil {
		t.Fatalf("%+v, %v; want a plain text without more", reply, err)
	}
	turn.Model = "q/m"
	if _, err := m.Turn(t.Context(), turn, nil); err != nil {
		t.Fatal(err)
	}
	seen := f.turns()
	first := seen[0].body
	if seen[0].path != "/v1/responses" || first["store"] != false || first["instructions"] != "be short" || first["max_output_tokens"] == nil ||
		!slices.Equal(first["include"].([]any), []any{"reasoning.encrypted_content"}) {
		t.Errorf("%s got %s", seen[0].path, seen[0].raw)
	}
	if tools := `"tools":[{"type":"function","name":"code_read","description":"does code/read","parameters":{`; !strings.Contains(seen[0].raw, tools) {
		t.Errorf("sent %s, want %s", seen[0].raw, tools)
	}
	input := `"input":[{"type":"message","role":"user","content":"read x"},` + reasoningItem + `,` + callItem + `,{"type":"function_call_output","call_id":"call_1","output":"done"}`
	if !strings.Contains(seen[1].raw, input+"]") {
		t.Errorf("the second request is\n%s\nwant in it\n%s", seen[1].raw, input)
	}
	if input += `,` + reasoningItem + `,` + textItem + `,{"type":"message","role":"user","content":"go on"}]`; !strings.Contains(seen[2].raw, input) {
		t.Errorf("the third request is\n%s\nwant in it\n%s", seen[2].raw, input)
	}
	if raw := seen[3].raw; seen[3].path != "/v1/chat/completions" || strings.Contains(raw, "gAAA") || !strings.Contains(raw, `"content":"a < b"`) || !strings.Contains(raw, `"id":"call_1"`) {
		t.Errorf("the other provider got %s %s", seen[3].path, raw)
	}
}

// TestResponsesEnds has the ends of an answer that are not a whole text.
func TestResponsesEnds(t *testing.T) {
	refusal := `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]}`
	for name, tt := range map[string]struct {
		answer       http.HandlerFunc
		text, finish string
		code         abi.Code
		permanent    bool
	}{
		"cut at the limit":  {answer: responseEvents("incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":`+responseUsage, textItem), text: "a < b", finish: "length"},
		"filtered":          {answer: responseEvents("incomplete", `"status":"incomplete","incomplete_details":{"reason":"content_filter"},"usage":`+responseUsage, textItem), code: abi.Denied, permanent: true},
		"refused":           {answer: responseEvents("completed", `"status":"completed","usage":`+responseUsage, refusal), code: abi.Denied, permanent: true},
		"failed":            {answer: responseEvents("failed", `"status":"failed","error":{"code":"server_error","message":"The model failed."},"usage":`+responseUsage), code: abi.Unavailable},
		"an error event":    {answer: sse(`{"type":"error","code":"rate_limit_exceeded","message":"Rate limit reached for m. Please try again in 2s."}`), code: abi.Unavailable},
		"the stream ends":   {answer: sse(`{"type":"response.output_text.delta","output_index":0,"delta":"half"}`), code: abi.Unavailable},
		"in one piece":      {answer: status(200, `{"object":"response","status":"completed","model":"m","output":[`+textItem+`],"usage":`+responseUsage+`}`), text: "a < b", finish: "stop"},
		"no items":          {answer: sse(`{"type":"response.output_text.delta","delta":"hi"}`, `{"type":"response.completed","response":{"status":"completed"}}`), text: "hi", finish: "stop"},
		"not this protocol": {answer: chat("x"), code: abi.Unavailable},
		"a page":            {answer: status(200, `{"hello":1}`), code: abi.Unavailable, permanent: true},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := responsesModels(t, newFake(t, tt.answer)).Turn(t.Context(), ask("x"), nil)
			if tt.code == "" {
				if err != nil || reply.Text != tt.text || reply.Finish != tt.finish {
					t.Errorf("%+v, %v", reply, err)
				}
			} else if e := abi.As(err); e == nil || e.Code != tt.code || e.Permanent != tt.permanent {
				t.Errorf("%s, permanent %v: %v", e.Code, e.Permanent, err)
			}
		})
	}
}

// TestResponsesWithoutReasoning: a model that has no encrypted reasoning refuses the request for it,
// and one that has no temperature refuses that. Both are left out from then on.
func TestResponsesWithoutReasoning(t *testing.T) {
	f := newFake(t,
		status(400, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`),
		status(400, `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature"}}`),
		responseEvents("completed", `"status":"completed","usage":`+responseUsage, textItem))
	m := responsesModels(t, f)
	turn := ask("x")
	warm := 0.5
	turn.Temperature, turn.Schema = &warm, json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
	for range 2 {
		if _, err := m.Turn(t.Context(), turn, nil); err != nil {
			t.Fatal(err)
		}
	}
	seen := f.turns()
	if len(seen) != 4 || seen[3].body["include"] != nil || seen[3].body["temperature"] != nil || !strings.Contains(seen[3].raw, `"text":{"format":{"type":"json_schema","name":"reply","strict":true,`) {
		t.Errorf("%d requests, the last %s", len(seen), seen[len(seen)-1].raw)
	}
}

// TestProtocolOfAModel: OpenAI's own service is asked by Responses, other servers by chat
// completions, and the configuration of a model or provider decides first.
func TestProtocolOfAModel(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/responses") {
			responseEvents("completed", `"status":"completed","usage":`+responseUsage, textItem)(w, r)
			return
		}
		chat("x")(w, r)
	}
	for want, config := range map[string]llm.Config{
		"/v1/responses":           {Providers: []llm.Provider{{Name: "p", BaseURL: "https://api.openai.com/v1"}}},
		"/v1/chat/completions":    {Providers: []llm.Provider{{Name: "p", BaseURL: "https://api.openai.com/v1", Protocol: "chat"}}},
		"/v2/chat/completions":    {Providers: []llm.Provider{{Name: "p", BaseURL: "https://api.example.com/v2"}}},
		"/v3/responses":           {Providers: []llm.Provider{{Name: "p", BaseURL: "https://api.example.com/v3"}}, Models: []llm.Model{{Name: "m", Protocol: "responses"}}},
		"/v4/chat/completions":    {Providers: []llm.Provider{{Name: "p", BaseURL: "https://api.openai.com/v4"}}, Models: []llm.Model{{Name: "m", Protocol: "chat"}}},
		"/openai/v5/responses":    {Providers: []llm.Provider{{Name: "p", BaseURL: "https://api.example.com/openai/v5", Protocol: "responses"}}},
		"/gateway/v1/completions": {Providers: []llm.Provider{{Name: "p", BaseURL: "https://api.example.com/x", Protocol: "grpc"}}},
		"/anthropic":              {Providers: []llm.Provider{{Name: "p", Kind: llm.KindAnthropic, BaseURL: "https://api.example.com/x", Protocol: "chat"}}},
	} {
		f := newFake(t, answer)
		config.Default, config.Env, config.HTTPClient = "p/m", env(), &http.Client{Transport: redirected(f.URL)}
		m, err := llm.Open(config)
		if p := config.Providers[0]; p.Protocol == "grpc" || p.Kind == llm.KindAnthropic {
			if err == nil || !strings.Contains(err.Error(), "protocol") {
				t.Errorf("%+v: %v", p, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Turn(t.Context(), sentinels.Turn{Messages: ask("x").Messages}, nil); err != nil || f.turns()[0].path != want {
			t.Errorf("asked %s, want %s; %v", f.turns()[0].path, want, err)
		}
	}
}
