package llm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// measured returns a reply with the tokens that a server has counted, and the limit of a turn.
func measured(reply, input, limit string) string {
	reply = strings.Replace(reply, `"inputTokens":10`, `"inputTokens":`+input, 1)
	return strings.TrimSuffix(reply, "}") + `,"inputLimit":` + limit + `}`
}

// tooLong is the error of a turn that is larger than the window.
func tooLong() *sdk.Error {
	e := sdk.Fail(sdk.CodeLimit, "context window exceeded")
	e.Field, e.Permanent = "append", true
	return e
}

const reading = `{"prompt":"read all","context":false,"tools":["a"]}`

// parts returns what the turns have beside their tools.
func parts(h *sdktest.Host) (list []string) {
	for _, c := range h.Calls() {
		if c.Function == "sentinel_llm" {
			list = append(list, get(c.Value(), "replace", "append", "aside"))
		}
	}
	return list
}

// TestOldResultsAreLeftOut checks that the oldest results go first, only as many as needed, and
// that each is replaced once.
func TestOldResultsAreLeftOut(t *testing.T) {
	big := sdk.Quote(strings.Repeat("x", 700))
	h := sdktest.New(t).
		OK("sentinel_llm",
			measured(toolCalls(`a {"n":1}`), "100", "2000"), measured(toolCalls(`a {"n":2}`), "700", "2000"), measured(toolCalls(`a {"n":3}`), "1300", "2000"),
			measured(toolCalls(`a {"n":4}`), "1600", "2000"), measured(reply("done", ""), "1500", "2000")).
		OK("sentinel_command", big, big, big, big)
	out, fault := run(t, reading, h)
	if fault != nil || get(out, "text", "turns", "shortened") != `["done",5,1]` {
		t.Fatalf("%s %v", out, fault)
	}
	got := parts(h)
	if len(got) != 5 || strings.Contains(strings.Join(got[:4], ""), "replace") || !strings.Contains(got[4], `{"from":2,"to":3,"with":[{"role":"tool","content":"[The result of a {\"n\":1} was left out, because the conversation is long: 700 bytes. The journal has it as tool call 1 of this step.`) {
		t.Errorf("%q", got)
	}
	if logs := h.Logs(); len(logs) != 1 || !strings.Contains(logs[0].Message, "shortened before turn 5") {
		t.Errorf("%v", logs)
	}
}

// TestOverflowIsLearned checks that a turn which is refused is made again, shorter, and that a
// conversation of which nothing is left to shorten is the error.
func TestOverflowIsLearned(t *testing.T) {
	big := sdk.Quote(strings.Repeat("x", 6000))
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`a {"n":1}`), toolCalls(`a {"n":2}`)).
		Fail("sentinel_llm", tooLong()).
		OK("sentinel_llm", reply("done", "")).
		OK("sentinel_command", big, big)
	out, fault := run(t, reading, h)
	if fault != nil || get(out, "text", "turns", "shortened") != `["done",3,1]` {
		t.Fatalf("%s %v", out, fault)
	}
	if got := parts(h); len(got) != 4 || !strings.Contains(got[3], `{"from":2,"to":3,`) {
		t.Errorf("%q", got)
	}
	for name, fields := range map[string]string{"the prompt alone": reading, "overflow fail": strings.Replace(reading, "false", `{"add":false,"overflow":"fail"}`, 1)} {
		h := sdktest.New(t)
		if name == "overflow fail" {
			h.OK("sentinel_llm", toolCalls(`a {"n":1}`)).OK("sentinel_command", big)
		}
		h.Fail("sentinel_llm", tooLong())
		if _, fault := run(t, fields, h); fault == nil || fault.Code != sdk.CodeLimit || fault.Message != "context window exceeded" {
			t.Errorf("%s: %v", name, fault)
		}
	}
}

// TestFirstTurnIsTooLong checks that a first turn with the context is made once more when it
// is refused, because the host then knows the window and cuts the context.
func TestFirstTurnIsTooLong(t *testing.T) {
	fields := strings.Replace(reading, "false", "true", 1)
	h := sdktest.New(t).Fail("sentinel_llm", tooLong()).OK("sentinel_llm", reply("done", ""))
	if out, fault := run(t, fields, h); fault != nil || get(out, "text", "turns") != `["done",1]` {
		t.Errorf("%s %v", out, fault)
	}
	h = sdktest.New(t).Fail("sentinel_llm", tooLong()).Fail("sentinel_llm", tooLong())
	if _, fault := run(t, fields, h); fault == nil || fault.Code != sdk.CodeLimit || len(h.Requests("sentinel_llm")) != 2 {
		t.Errorf("%v, %d requests", fault, len(h.Requests("sentinel_llm")))
	}
}

// TestSummary checks what takes the place of a conversation whose replies are too large, and
// that errors of the summary's turn are those of the step.
func TestSummary(t *testing.T) {
	long := strings.Repeat("y", 2500)
	turns := func() *sdktest.Host {
		return sdktest.New(t).
			OK("sentinel_llm",
				measured(toolCalls(`code/write {"path":"a.txt","content":"`+long+`"}`), "700", "2000"),
				measured(toolCalls(`code/read {"path":"none"}`), "1700", "2000"),
				measured(toolCalls(`code/read {"path":"a.txt"}`), "1780", "2000")).
			OK("sentinel_command", `"written"`).
			Fail("sentinel_command", sdk.Fail(sdk.CodeNotFound, "no such file")).
			OK("sentinel_command", sdk.Quote("the text "+strings.Repeat("z", 100)))
	}
	fields := strings.Replace(reading, `["a"]`, `["code/*"]`, 1)
	h := turns().OK("sentinel_llm", measured(reply("the summary", ""), "1500", "2000"), measured(reply("done", ""), "900", "2000"))
	out, fault := run(t, fields, h)
	if fault != nil || get(out, "text", "turns", "shortened") != `["done",4,1]` || out.Get("usage").Get("calls").String() != "5" {
		t.Fatalf("%s %v", out, fault)
	}
	got := parts(h)
	if len(got) != 5 || !strings.Contains(got[3], `[{"from":5,"to":6,"with":[]}],[{"role":"user","content":"[The conversation is too long`) || !strings.HasSuffix(got[3], `,true]`) {
		t.Fatalf("the turn of the summary: %q", got)
	}
	last := got[4]
	for _, want := range []string{
		`[[{"from":0,"to":5,"with":[{"role":"user","content":"read all\n\n[Earlier messages were left out`, `## Your summary\nthe summary`,
		`## Files that you have changed\n- a.txt`, `## Errors that are open\n- code/read {\"path\":\"none\"}: Error (not_found): no such file`,
		`[{"role":"tool","content":"the text zzz`, `"toolCallId":"t0"`,
	} {
		if !strings.Contains(last, want) {
			t.Errorf("%q is not in\n%s", want, last)
		}
	}
	h = turns().Fail("sentinel_llm", sdk.AsError(sdk.Permanent(sdk.Fail(sdk.CodeDenied, "no credit"))))
	if _, fault := run(t, fields, h); fault == nil || fault.Code != sdk.CodeDenied {
		t.Errorf("%v", fault)
	}
	// Without a summary the task goes on with what the step knows.
	h = turns().Fail("sentinel_llm", tooLong()).Fail("sentinel_llm", tooLong()).Fail("sentinel_llm", tooLong()).OK("sentinel_llm", reply("done", ""))
	if out, fault := run(t, fields, h); fault != nil || get(out, "text") != `["done"]` || !strings.Contains(parts(h)[len(parts(h))-1], "There is none") {
		t.Errorf("%s %v %q", out, fault, parts(h))
	}
}

// TestContextField checks both forms of the field.
func TestContextField(t *testing.T) {
	for _, tt := range []struct{ fields, all, sources string }{
		{`"prompt":"x"`, "-", "true"},
		{`"prompt":"x","context":true`, "true", "-"},
		{`"prompt":"x","context":{}`, "-", "true"},
		{`"prompt":"x","context":{"overflow":"fail"}`, "-", "true"},
		{`"prompt":"x","context":{"add":true,"overflow":"fail"}`, "true", "-"},
		{`"prompt":"x","context":false`, "-", "-"},
		{`"prompt":"x","context":{"add":false}`, "-", "-"},
		{`"context":{"overflow":"fail"}`, "true", "-"},
		{`"context":false`, "-", "-"},
	} {
		h := sdktest.New(t).OK("sentinel_llm", reply("hi", ""))
		_, fault := run(t, `{`+tt.fields+`}`, h)
		request := h.Calls()[0].Value()
		all, sources := strings.Trim(get(request, "context"), `["]`), strings.Trim(get(request, "sources"), `["]`)
		if fault != nil || all != tt.all || sources != tt.sources {
			t.Errorf("%s: context %s, sources %s, %v", tt.fields, all, sources, fault)
		}
	}
	if _, fault := run(t, `{"prompt":"x","context":{"overflow":"perhaps"}}`, sdktest.New(t)); fault == nil || fault.Field != "context.overflow" {
		t.Errorf("%v", fault)
	}
}

// TestCallThatIsTooLarge checks that a call whose arguments were left out is an error for the
// model, and not made.
func TestCallThatIsTooLarge(t *testing.T) {
	call := strings.Replace(toolCalls(`code/write "left out"`), `"left out"`, `"left out","size":300000`, 1)
	h := sdktest.New(t).OK("sentinel_llm", call, reply("done", ""))
	out, fault := run(t, strings.Replace(reading, `["a"]`, `["code/*"]`, 1), h)
	if fault != nil || get(out, "text", "success") != `["done",true]` || len(h.Requests("sentinel_command")) != 0 {
		t.Fatalf("%s %v", out, fault)
	}
	want := "Error (limit): code/write was not executed: its arguments have 300000 bytes"
	if got := h.Calls()[1].Value().Get("append").At(0).Get("content").StringOr(""); !strings.HasPrefix(got, want) || !strings.Contains(got, "Hint: make several smaller calls") {
		t.Error(cmp.Diff(want, got))
	}
}
