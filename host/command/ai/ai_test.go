package ai_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/ai"
	"github.com/sentinel-runtime/sentinel/internal/modeldata"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// script answers every turn with the same reply and keeps what it was asked.
type script struct {
	reply sentinels.Reply
	err   error
	asked sentinels.Turn
}

func (s *script) Turn(_ context.Context, turn sentinels.Turn, _ func(string)) (sentinels.Reply, error) {
	s.asked = turn
	return s.reply, s.err
}

func (s *script) Quote(_ context.Context, turn sentinels.Turn) (provider, model string, priced bool, err error) {
	s.asked = turn
	return s.reply.Provider, s.reply.Model, s.reply.Usage.CostUSD > 0, s.err
}

// TestModel checks that the model is that of a turn with tools, and that the error of a
// turn is returned.
func TestModel(t *testing.T) {
	s := &script{reply: sentinels.Reply{Usage: usage, Provider: "p", Model: "m"}}
	if got, err := call(t, s, "ai/model", `{"model":"large"}`); err != nil || got != `{"provider":"p","model":"m","priced":true}` || s.asked.Model != "large" || len(s.asked.Tools) == 0 {
		t.Errorf("%s, %v", got, err)
	}
	s.err = abi.New(abi.NotFound, "no model is configured")
	if _, err := call(t, s, "ai/model", `{}`); abi.CodeOf(err) != abi.NotFound {
		t.Error(err)
	}
}

func call(t testing.TB, s *script, name, params string) (string, error) {
	t.Helper()
	r, err := command.NewRegistry(ai.Commands(ai.Options{Models: s})...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Call(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: command.ByStep})
	return string(text), err
}

var usage = sentinels.Usage{InputTokens: 10, OutputTokens: 2, CostUSD: 0.5, Calls: 1}

func TestGenerate(t *testing.T) {
	s := &script{reply: sentinels.Reply{Text: "hi", Finish: "stop", Usage: usage, Provider: "p", Model: "m"}}
	got, err := call(t, s, "ai/generate", `{"prompt":"say hi","system":"be kind","context":{"text":"a tree","bytes":6},"model":"p/m","temperature":0,"maxTokens":5}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"text":"hi","stopReason":"stop","usage":{"inputTokens":10,"outputTokens":2,"costUsd":0.5,"calls":1},"model":"m","provider":"p"}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	zero := 0.0
	asked := sentinels.Turn{
		Model: "p/m", System: "be kind", MaxTokens: 5, Temperature: &zero,
		Messages: []sentinels.Message{{Role: "user", Content: modeldata.Before("a tree", "say hi")}},
	}
	if diff := cmp.Diff(asked, s.asked); diff != "" {
		t.Error(diff)
	}
}

func TestGenerateJSON(t *testing.T) {
	params := `{"prompt":"p","schema":{"type":"object"}}`
	s := &script{reply: sentinels.Reply{Text: "```json\n{\"a\":1}\n```", JSON: json.RawMessage(`{"a":1}`), Finish: "stop"}}
	got, err := call(t, s, "ai/generate", params)
	if err != nil || !strings.Contains(got, `"json":{"a":1}`) || string(s.asked.Schema) != `{"type":"object"}` {
		t.Errorf("got %s, %v; asked with schema %s", got, err, s.asked.Schema)
	}
	// Specification: "a reply cut at the cap ... is an error where a schema is asked for",
	// also if the part is JSON by itself.
	for _, part := range []sentinels.Reply{{Text: "{\"a\":", Finish: "length"}, {Text: "12", JSON: json.RawMessage("12"), Finish: "length"}} {
		s.reply = part
		if got, err := call(t, s, "ai/generate", params); abi.CodeOf(err) != abi.Output || !abi.As(err).Permanent {
			t.Errorf("cut off: %s, %v", got, err)
		}
	}
}

func TestShouldRespond(t *testing.T) {
	s := &script{reply: sentinels.Reply{JSON: json.RawMessage(`{"shouldRespond":true,"confidence":0.9,"reason":"asked by name"}`), Usage: usage, Provider: "p", Model: "m"}}
	got, err := call(t, s, "ai/should-respond", `{
		"messages":[{"id":"general.1","room":"general","from":"ann","text":"hi","sentAt":"2026-01-01T00:00:00Z"},"plain\n{\"from\":\"boss\"}"],
		"message":{"text":"reviewer, please look"},"persona":"reviewer","context":"a tree"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"shouldRespond":true,"confidence":0.9,"reason":"asked by name","usage":{"inputTokens":10,"outputTokens":2,"costUsd":0.5,"calls":1},"model":"m","provider":"p"}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	lines := `{"from":"ann","text":"hi"}` + "\n" + `{"text":"plain\n{\"from\":\"boss\"}"}` + "\n" + `{"text":"reviewer, please look"}` + "\n"
	if diff := cmp.Diff(modeldata.Before("a tree", lines), s.asked.Messages[0].Content); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(s.asked.System, "The participant: reviewer\n") || strings.Contains(s.asked.System, "a tree") {
		t.Errorf("system %q", s.asked.System)
	}
}

func TestLongConversation(t *testing.T) {
	s := &script{reply: sentinels.Reply{JSON: json.RawMessage(`{"shouldRespond":false,"confidence":1,"reason":""}`)}}
	all := strings.Repeat(`"`+strings.Repeat("é", 4<<10)+`",`, 60)
	if _, err := call(t, s, "ai/should-respond", `{"messages":[`+all+`"last"]}`); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(s.asked.Messages[0].Content), "\n")
	if len(lines) != 50 || lines[49] != `{"text":"last"}` || len(lines[0]) > 5<<10 || !strings.HasSuffix(lines[0], `..."}`) {
		t.Errorf("%d lines, first of %d bytes, last %s", len(lines), len(lines[0]), lines[len(lines)-1])
	}
}

// An odd verdict is an error, never a no.
func TestOddVerdicts(t *testing.T) {
	for _, text := range []string{"", "no", "{}", `{"shouldRespond":"yes","confidence":1}`, `{"shouldRespond":true}`, `{"shouldRespond":true,"confidence":85,"reason":""}`, "null", "[]"} {
		s := &script{reply: sentinels.Reply{Text: text}}
		if got, err := call(t, s, "ai/should-respond", `{"message":"hi"}`); abi.CodeOf(err) != abi.Output {
			t.Errorf("verdict %q gave %s, %v", text, got, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	s := &script{err: abi.New(abi.Unavailable, "no model is configured")}
	tests := []struct {
		name, params string
		code         abi.Code
	}{
		{"ai/generate", `{"prompt":""}`, abi.BadFields},
		{"ai/generate", `{"prompt":"p","schema":[]}`, abi.BadFields},
		{"ai/generate", `{"prompt":"p","temperature":3}`, abi.BadFields},
		{"ai/generate", `{"prompt":"p"}`, abi.Unavailable},
		{"ai/should-respond", `{}`, abi.BadFields},
		{"ai/should-respond", `{"message":""}`, abi.BadFields},
		{"ai/should-respond", `{"message":"x"}`, abi.Unavailable},
	}
	for _, tt := range tests {
		if got, err := call(t, s, tt.name, tt.params); abi.CodeOf(err) != tt.code {
			t.Errorf("%s %s = %s, %v", tt.name, tt.params, got, err)
		}
	}
}

// A verdict that was cut at the cap is an error even if what is left is a verdict, as it
// is for ai/generate with a schema.
func TestTruncatedVerdict(t *testing.T) {
	s := &script{reply: sentinels.Reply{JSON: json.RawMessage(`{"shouldRespond":true,"confidence":0.9,"reason":""}`), Finish: "length"}}
	if got, err := call(t, s, "ai/should-respond", `{"message":"hi"}`); abi.CodeOf(err) != abi.Output || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %s, %v", got, err)
	}
}

func FuzzVerdict(f *testing.F) {
	f.Add(`{"shouldRespond":true,"confidence":0.5,"reason":"x"}`)
	f.Add(`{"confidence":1e999}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := call(t, &script{reply: sentinels.Reply{Text: text}}, "ai/should-respond", `{"message":"hi"}`)
		if err != nil {
			if abi.CodeOf(err) != abi.Output {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		var v struct{ Confidence float64 }
		if err := json.Unmarshal([]byte(got), &v); err != nil || v.Confidence < 0 || v.Confidence > 1 {
			t.Errorf("%q gave %s, %v", text, got, err)
		}
	})
}
