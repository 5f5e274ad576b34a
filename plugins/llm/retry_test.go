package llm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// busy is the error of a server that is overloaded.
func busy(retryAfterMs int64) *sdk.Error {
	return &sdk.Error{Code: sdk.CodeUnavailable, Message: `model "p/m": 503 Service Unavailable`, RetryAfterMs: retryAfterMs}
}

// Specification: "a turn that fails for a transient reason is tried again inside the
// step: three more tries at 2, 4, 8 s or Retry-After, as parked journaled time".
func TestSpecTurnIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fails []*sdk.Error
		waits []string
		error string
	}{
		{"once", []*sdk.Error{busy(0)}, []string{`{"durationMs":2000}`}, ""},
		{"three times", []*sdk.Error{busy(0), {Code: sdk.CodeTimeout, Message: "silent"}, busy(0)}, []string{`{"durationMs":2000}`, `{"durationMs":4000}`, `{"durationMs":8000}`}, ""},
		{"Retry-After", []*sdk.Error{busy(1500), busy(70000)}, []string{`{"durationMs":1500}`, `{"durationMs":70000}`}, ""},
		{"always", []*sdk.Error{busy(0), busy(0), busy(0), busy(7)}, []string{`{"durationMs":2000}`, `{"durationMs":4000}`, `{"durationMs":8000}`},
			`the turn failed 4 times, the last time: model "p/m": 503 Service Unavailable`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t)
			for _, e := range tt.fails {
				h.Fail("sentinel_llm", e)
			}
			for range tt.waits {
				h.OK("sentinel_wait", `{"timedOut":false}`)
			}
			if tt.error == "" {
				h.OK("sentinel_llm", reply("hello", ""))
			}
			out, fault := run(t, `{"prompt":"hi","system":"be kind"}`, h)
			switch {
			case tt.error == "" && (fault != nil || get(out, "text", "turns") != `["hello",1]`):
				t.Errorf("got %s %v", out, fault)
			case tt.error != "" && (fault == nil || fault.Message != tt.error || fault.Code != sdk.CodeUnavailable || fault.RetryAfterMs != 7):
				t.Errorf("got %v", fault)
			}
			if diff := cmp.Diff(tt.waits, h.Requests("sentinel_wait")); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			// A failed turn has changed nothing, so each turn sends the same.
			for _, request := range h.Requests("sentinel_llm") {
				if want := `{"append":[{"content":"hi","role":"user"}],"sources":true,"system":"be kind"}`; request != want {
					t.Errorf("request %s, want %s", request, want)
				}
			}
			if logs := h.Logs(); len(logs) != len(tt.waits) || !strings.HasPrefix(logs[0].Message, "the turn failed (1 of 4 times) and is made again in ") {
				t.Errorf("log lines %v", logs)
			}
		})
	}
}

// Specification: "not for quota, billing, authentication, context length, content
// policy". The host reports these as permanent; other codes are never transient.
func TestSpecTurnIsNotTriedAgain(t *testing.T) {
	for _, e := range []*sdk.Error{
		{Code: sdk.CodeDenied, Permanent: true, Message: "no credit left"},
		{Code: sdk.CodeLimit, Permanent: true, Message: "context window exceeded"},
		{Code: sdk.CodeUnavailable, Permanent: true, Message: "this host provides no models"},
		{Code: sdk.CodeBadFields, Message: "wrong order"},
		{Code: sdk.CodeCancelled, Message: "stopped"},
	} {
		h := sdktest.New(t).Fail("sentinel_llm", e)
		if _, fault := run(t, `{"prompt":"hi"}`, h); fault == nil || fault.Message != e.Message {
			t.Errorf("%s: got %v", e.Message, fault)
		}
	}
}

// Specification: "with `onError: retry` the step's own limit replaces it".
func TestSpecOnErrorRetryReplacesTheTries(t *testing.T) {
	h := sdktest.New(t).OnError("retry").Fail("sentinel_llm", busy(800))
	if _, fault := run(t, `{"prompt":"hi"}`, h); fault == nil || fault.RetryAfterMs != 800 || strings.Contains(fault.Message, "times") {
		t.Errorf("got %v", fault)
	}
	h = sdktest.New(t).OnError("skip").Fail("sentinel_llm", busy(0)).OK("sentinel_wait", `{"timedOut":false}`).OK("sentinel_llm", reply("hello", ""))
	if out, fault := run(t, `{"prompt":"hi"}`, h); fault != nil || get(out, "text") != `["hello"]` {
		t.Errorf("with skip: %s %v", out, fault)
	}
}

// busyWith is the error of a model in whose place the host names another one.
func busyWith(fallback string) *sdk.Error {
	e := busy(0)
	e.Fallback = fallback
	return e
}

// Specification: "`model` may be a list tried in order".
func TestSpecListOfModels(t *testing.T) {
	const fields = `{"prompt":"hi","model":["a/1","b/2"],"tools":["x"]}`
	missing := &sdk.Error{Code: sdk.CodeNotFound, Permanent: true, Message: "a is not configured"}
	asked := func(h *sdktest.Host) (models string) {
		for _, c := range h.Calls() {
			switch c.Function {
			case "sentinel_llm":
				models += c.Value().Get("model").StringOr("-") + " "
			case "sentinel_wait":
				models += c.Value().Get("durationMs").String() + " "
			}
		}
		return models
	}
	for _, tt := range []struct {
		name  string
		host  *sdktest.Host
		asked string
		error string
	}{
		{"the first answers", sdktest.New(t).OK("sentinel_llm", reply("done", "")), "a/1 ", ""},
		{"the second answers", sdktest.New(t).Fail("sentinel_llm", missing).OK("sentinel_llm", reply("done", "")), "a/1 b/2 ", ""},
		{"the one that answered is kept", sdktest.New(t).Fail("sentinel_llm", busy(0)).OK("sentinel_llm", toolCalls("x {}"), reply("done", "")).
			OK("sentinel_command", "1"), "a/1 b/2 b/2 ", ""},
		{"all are tried before a wait", sdktest.New(t).Fail("sentinel_llm", busy(0)).Fail("sentinel_llm", missing).
			OK("sentinel_llm", reply("done", "")).OK("sentinel_wait", `{"timedOut":false}`), "a/1 b/2 2000 a/1 ", ""},
		{"none can answer", sdktest.New(t).Fail("sentinel_llm", missing).Fail("sentinel_llm", &sdk.Error{Code: sdk.CodeDenied, Permanent: true, Message: "no credit"}),
			"a/1 b/2 ", "no model of the list answered: a is not configured; no credit"},
		{"the fallback of the host is behind them", sdktest.New(t).Fail("sentinel_llm", busyWith("c/3")).Fail("sentinel_llm", busyWith("c/3")).Fail("sentinel_llm", busyWith("d/4")).
			OK("sentinel_llm", toolCalls("x {}"), reply("done", "")).OK("sentinel_command", "1"), "a/1 b/2 c/3 d/4 d/4 ", ""},
		{"behind a wait the first is asked again", sdktest.New(t).Fail("sentinel_llm", busyWith("c/3")).Fail("sentinel_llm", missing).Fail("sentinel_llm", busy(0)).
			OK("sentinel_llm", reply("done", "")).OK("sentinel_wait", `{"timedOut":false}`), "a/1 b/2 c/3 2000 a/1 ", ""},
		{"the run ends", sdktest.New(t).Fail("sentinel_llm", sdk.Fail(sdk.CodeCancelled, "stopped")), "a/1 ", "stopped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, fault := run(t, fields, tt.host)
			if tt.error == "" && (fault != nil || get(out, "text") != `["done"]`) || tt.error != "" && (fault == nil || fault.Message != tt.error) {
				t.Errorf("%s %v", out, fault)
			}
			if got := asked(tt.host); got != tt.asked {
				t.Errorf("asked %q, want %q", got, tt.asked)
			}
		})
	}
	for _, model := range []string{`[]`, `["a",1]`} {
		if _, fault := run(t, `{"prompt":"x","model":`+model+`}`, sdktest.New(t)); fault == nil || fault.Field != "model" {
			t.Errorf("model %s: %v", model, fault)
		}
	}
}
