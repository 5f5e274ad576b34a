package llm_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/llmtest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// answering is a server in this process that has one answer, and the requests that it got.
type answering struct {
	kind   string
	body   []byte
	bodies [][]byte
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.bodies = append(a.bodies, raw)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.kind}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

// seeds are answers that no stand-in gives, one event a line.
var seeds = []string{
	`{"choices":[{"index":0,"message":{"role":"assistant","content":"<think>a</think>b","vendor":[1,{}]},"finish_reason":"stop"}]}`,
	`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}` + "\n" + `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}` + "\n" +
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"code_read","input":{}}}` + "\n" + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"x\"}"}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}` + "\n" + `{"type":"message_stop"}`,
	`{"type":"message","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"x","citations":null},{"type":"redacted_thinking","data":"z"}]}`,
}

// FuzzAnswers: whatever a server answers, the error has a code, what was said is a JSON object of
// which the same server gets back a request that is JSON, and no call comes out of thinking.
func FuzzAnswers(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed), strings.Contains(seed, `"type":"message`), false, strings.Contains(seed, `"message":{"role"`) || strings.Contains(seed, `"type":"message"`))
	}
	for _, spec := range llmtest.Specs() {
		for _, seed := range llmtest.New(spec).Fixtures() {
			f.Add([]byte(seed), spec.Protocol == llmtest.Messages, spec.Protocol == llmtest.Responses, false)
		}
	}
	f.Fuzz(func(t *testing.T, events []byte, claude, responses, whole bool) {
		server := &answering{kind: "text/event-stream"}
		if whole {
			server.kind, server.body = "application/json", events
		} else {
			for _, line := range bytes.Split(events, []byte("\n")) {
				server.body = append(append(append(server.body, "data: "...), line...), "\n\n"...)
			}
		}
		p := llm.Provider{Name: "p", BaseURL: "http://models.example.invalid/v1"}
		switch {
		case claude:
			p.Kind = llm.KindAnthropic
		case responses:
			p.Protocol = llm.ProtocolResponses
		}
		m, err := llm.Open(llm.Config{Env: env(), Default: "p/m", Providers: []llm.Provider{p}, Models: []llm.Model{{Name: "m", Context: 100_000}}, HTTPClient: &http.Client{Transport: server}})
		if err != nil {
			t.Fatal(err)
		}
		turn := withTools(ask("x"), "code/read")
		reply, err := m.Turn(t.Context(), turn, nil)
		if err != nil {
			if abi.As(err) == nil {
				t.Fatalf("%T is no *abi.Error", err)
			}
			return
		}
		if reply.Usage.InputTokens <= 0 || reply.Usage.OutputTokens < 0 {
			t.Fatalf("usage %+v", reply.Usage)
		}
		if reply.Said != nil {
			var said map[string]any
			if err := json.Unmarshal([]byte(reply.Said.Message), &said); err != nil {
				t.Fatalf("said %q: %v", reply.Said.Message, err)
			}
		}
		if _, err := m.Turn(t.Context(), again(turn, reply), nil); err != nil && abi.CodeOf(err) == abi.Internal {
			t.Fatal(err)
		}
		if last := server.bodies[len(server.bodies)-1]; !json.Valid(last) || len(server.bodies) < 2 {
			t.Fatalf("%d requests, the last is %.500q", len(server.bodies), last)
		}
	})
}
