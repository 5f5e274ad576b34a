package llm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// Answers of the host to a question.
const (
	approve = `{"timedOut":false,"decision":{"verdict":"approve","by":"ann","at":"2026-01-01T00:00:00Z"}}`
	reject  = `{"timedOut":false,"decision":{"verdict":"reject","by":"ann","at":"2026-01-01T00:00:00Z","comment":"use b.txt"}}`
)

const confirmed = `{"prompt":"x","tools":["code/*","code/shell/execute"],"confirm":{"commands":["code/write","code/shell/*"]}}`

// Specification: "Approved: that kind is approved for the rest of the step."
func TestSpecApprovedKind(t *testing.T) {
	h := sdktest.New(t).
		OK("sentinel_llm",
			toolCalls(`code/read {"path":"a"}`, `code/write {"path":"a\nb","content":"1"}`, `code/write {"path":"c","content":"1"}`),
			toolCalls(`code/shell/execute {"command":"go test ./..."}`, `code/shell/execute {"command":"go test -v ./x"}`, `code/shell/execute {"command":"go test; rm x"}`),
			reply("done", "")).
		OK("sentinel_command",
			`"read"`,
			`{"text":"+1","path":"a\nb","created":true,"pin":{"ifHash":"none"}}`, `"written"`, `"written"`,
			`{"text":"$ go test ./..."}`, `"tested"`, `"tested"`,
			`{"text":"$ go test; rm x"}`, `"removed"`).
		OK("sentinel_wait", approve, approve, approve)
	out, fault := run(t, confirmed, h)
	if fault != nil || out.Get("success").String() != "true" || out.Get("denied").Exists() {
		t.Fatalf("%s %v", out, fault)
	}
	var asked, kinds []string
	for _, r := range h.Requests("sentinel_wait") {
		v, _ := sdk.Parse(r)
		asked, kinds = append(asked, v.Get("decision").Get("prompt").StringOr("")), append(kinds, v.Get("decision").Get("callKind").StringOr("none"))
	}
	if diff := cmp.Diff([]string{"code/write", "go test", "none"}, kinds); diff != "" {
		t.Errorf("kinds of calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"Allow code/write of \"a\\nb\"? Approved, it may change other files too until this step ends.\n+1",
		"Allow go test? Approved, it may be executed with other options and files until this step ends.\n$ go test ./...",
		"Allow this line? It is asked about each other one.\n$ go test; rm x",
	}, asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	made := h.Requests("sentinel_command")
	for i, want := range map[int]string{
		1: `{"command":"code/preview","params":{"command":"code/write","params":{"content":"1","path":"a\nb"},"tools":["code/*","code/shell/execute"]}}`,
		2: `{"by":"model","command":"code/write","params":{"content":"1","ifHash":"none","path":"a\nb"},"tools":["code/*","code/shell/execute"]}`,
		3: `{"by":"model","command":"code/write","params":{"content":"1","path":"c"},"tools":["code/*","code/shell/execute"]}`,
	} {
		if made[i] != want {
			t.Errorf("call %d\n%s\nwant\n%s", i, made[i], want)
		}
	}
}

// Specification: "Rejected: the model gets an error result with the person's comment and
// continues; the same kind is asked again next time."
func TestSpecRejectedKind(t *testing.T) {
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`code/write {"path":"a"}`, `code/write {"path":"b"}`), reply("done", "")).
		OK("sentinel_command", `{"text":"a","path":"a"}`, `{"text":"b","path":"b"}`, `"written"`).
		OK("sentinel_wait", reject, approve)
	out, fault := run(t, confirmed, h)
	if fault != nil {
		t.Fatal(fault)
	}
	if got := out.Get("toolCalls").At(0).Get("error").StringOr(""); got != "code/write was not executed: ann rejected it: use b.txt" {
		t.Errorf("%q", got)
	}
	if got := h.Requests("sentinel_llm")[1]; !strings.Contains(got, `"content":"Error (denied): code/write was not executed: ann rejected it: use b.txt","isError":true`) {
		t.Errorf("the model got %s", got)
	}
	if len(h.Requests("sentinel_wait")) != 2 || out.Get("denied").Exists() {
		t.Errorf("%s", out)
	}
}

// Specification: "deny: the call is an error result that says why and how to allow it, without a question."
func TestSpecDeny(t *testing.T) {
	fields := strings.Replace(confirmed, `"commands"`, `"mode":"deny","commands"`, 1)
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`code/write {"path":"a"}`, `code/shell/execute {"command":"go test x"}`, `code/read {}`), reply("cannot", "")).
		OK("sentinel_command", `"read"`)
	out, fault := run(t, fields, h)
	if fault != nil || out.Get("denied").String() != "2" {
		t.Fatalf("%s %v", out, fault)
	}
	got := h.Requests("sentinel_llm")[1]
	for _, want := range []string{"Error (denied): code/write was not executed: a person has to approve code/write", "has to approve go test", "at a terminal", "--yolo"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}

// TestConfirmOff checks that nothing is asked with mode off, and none of other commands.
func TestConfirmOff(t *testing.T) {
	for _, fields := range []string{
		strings.Replace(confirmed, `"commands"`, `"mode":"off","commands"`, 1),
		`{"prompt":"x","tools":["code/*"],"confirm":{"commands":["code/edit","code/w","fs/*"]}}`,
	} {
		h := sdktest.New(t).OK("sentinel_llm", toolCalls(`code/write {"path":"a"}`), reply("done", "")).OK("sentinel_command", `"written"`)
		if _, fault := run(t, fields, h); fault != nil {
			t.Error(fault)
		}
	}
	for _, bad := range []string{`{"commands":"x"}`, `{"commands":[],"mode":"perhaps"}`} {
		if _, fault := run(t, `{"prompt":"x","confirm":`+bad+`}`, sdktest.New(t)); fault == nil || !strings.HasPrefix(fault.Field, "confirm.") {
			t.Errorf("%s: %v", bad, fault)
		}
	}
}

// TestConfirmWithoutQuestion checks that a call that would be refused is not asked about,
// that a stopped run ends, and that arguments written as a text are the same call.
func TestConfirmWithoutQuestion(t *testing.T) {
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`code/write {"path":".git/x"}`, `code/write "{\"path\":\"a\"}"`), reply("done", "")).
		Fail("sentinel_command", &sdk.Error{Code: sdk.CodeDenied, Message: "steers tools"}).
		OK("sentinel_command", `{"text":"a","path":"a","pin":{"ifHash":"h"}}`, `"written"`).
		OK("sentinel_wait", approve)
	out, fault := run(t, confirmed, h)
	if fault != nil || out.Get("toolCalls").At(0).Get("error").StringOr("") != "steers tools" {
		t.Fatalf("%s %v", out, fault)
	}
	if got := h.Requests("sentinel_command")[2]; !strings.Contains(got, `"params":{"ifHash":"h","path":"a"}`) {
		t.Error(got)
	}
	h = sdktest.New(t).OK("sentinel_llm", toolCalls(`code/write {}`)).OK("sentinel_command", `{"text":""}`).Fail("sentinel_wait", sdk.Fail(sdk.CodeCancelled, "stopped"))
	if _, fault := run(t, confirmed, h); fault == nil || fault.Code != sdk.CodeCancelled {
		t.Errorf("a stopped run continued: %v", fault)
	}
}

// TestChecks checks that failing checks go back into the conversation, a bounded number of
// times.
func TestChecks(t *testing.T) {
	const fields = `{"prompt":"x","tools":["a"],"maxChecks":2,"checks":{"count":1}}`
	block := func(output string) string { return `{"blocks":[{"success":true,"output":` + output + `}]}` }
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`a {}`), reply("done", ""), reply("repaired", "")).
		OK("sentinel_command", `1`).
		OK("sentinel_block", block(`{"success":false,"text":"red"}`), block(`{"success":true}`))
	out, fault := run(t, fields, h)
	if fault != nil || get(out, "text", "success", "stopReason", "checkRuns", "check") != `["repaired",true,"stop",2,{"success":true}]` {
		t.Fatalf("%s %v", out, fault)
	}
	if got := h.Requests("sentinel_llm")[2]; !strings.Contains(got, `"conversation":"c1"`) || !strings.Contains(got, `not accepted:\n\nred\n\nRepair it`) {
		t.Error(got)
	}
	h = sdktest.New(t).
		OK("sentinel_llm", reply("done", ""), reply("done", "")).
		OK("sentinel_block", block(`{"success":false,"text":"red"}`), block(`{"success":false}`))
	if out, fault := run(t, fields, h); fault != nil || get(out, "success", "stopReason") != `[false,"checks"]` {
		t.Errorf("%s %v", out, fault)
	}
	h = sdktest.New(t).OK("sentinel_llm", reply("done", "")).OK("sentinel_block", block(`{"success":false}`))
	if out, fault := run(t, strings.Replace(fields, `"maxChecks":2`, `"maxTurns":1`, 1), h); fault != nil || get(out, "success", "stopReason") != `[false,"limit"]` {
		t.Errorf("%s %v", out, fault)
	}
	h = sdktest.New(t).OK("sentinel_llm", reply("done", "")).
		OK("sentinel_block", `{"blocks":[{"success":false,"error":{"code":"denied","message":"no"}}]}`)
	if _, fault := run(t, fields, h); fault == nil || fault.Code != sdk.CodeDenied {
		t.Errorf("checks that cannot be executed: %v", fault)
	}
}
