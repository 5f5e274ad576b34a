package watch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/watch"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestExecution(t *testing.T) {
	const lines = `"executionId":"x1","lines":[{"text":"boom"}],"text":"boom","finished":true`
	for _, tt := range []struct{ fields, request, answer, want string }{
		{`{"executionId":"x1"}`, `{"executionId":"x1","until":"finished"}`, `{` + lines + `,"exitCode":2}`, `{` + lines + `,"exitCode":2,"success":false}`},
		{`{"executionId":"x1"}`, `{"executionId":"x1","until":"finished"}`, `{` + lines + `,"exitCode":0}`, `{` + lines + `,"exitCode":0,"success":true}`},
		{`{"executionId":"x1","until":"match","rules":[{"pattern":"^ok$","classification":"success","action":"Emit"}]}`,
			`{"executionId":"x1","rules":[{"action":"Emit","classification":"success","pattern":"^ok$"}],"until":"match"}`, `{"executionId":"x1","finished":false}`, `{"executionId":"x1","finished":false}`},
	} {
		h := sdktest.New(t).OK("sentinel_watch", tt.answer)
		out, fault := sdktest.Run(t, sdktest.Only(watch.Step()), "watch", tt.fields, h)
		if fault != nil || out.String() != tt.want {
			t.Errorf("got  %s %v\nwant %s", out, fault, tt.want)
		}
		if diff := cmp.Diff([]string{tt.request}, h.Requests("sentinel_watch")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestNoMatch: a process that ends before a match is an error, also with exit code 0.
func TestNoMatch(t *testing.T) {
	for answer, want := range map[string]sdk.Error{
		`{"executionId":"x1","lines":[],"text":"cannot bind","finished":true,"exitCode":1}`: {
			Message: "watch: execution x1 ended with exit code 1 before a line that a rule matches: cannot bind", Data: `{"executionId":"x1","finished":true,"exitCode":1,"success":false}`},
		`{"finished":true,"exitCode":0,"success":true}`: {
			Message: "watch: execution x1 ended with exit code 0 before a line that a rule matches", Data: `{"finished":true,"exitCode":0,"success":true}`},
		`{"finished":true,"text":"` + strings.Repeat("é", 400) + `"}`: {
			Message: "watch: execution x1 ended before a line that a rule matches: " + strings.Repeat("é", 250), Data: `{"finished":true}`},
	} {
		want.Code = sdk.CodePlugin
		h := sdktest.New(t).OK("sentinel_watch", answer)
		_, fault := sdktest.Run(t, sdktest.Only(watch.Step()), "watch", `{"executionId":"x1","until":"match"}`, h)
		if diff := cmp.Diff(&want, fault); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
}

func TestEvent(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_wait", `{"timedOut":false,"event":{"type":"git:push","data":{"n":1}}}`)
	out, fault := sdktest.Run(t, sdktest.Only(watch.Step()), "watch", `{"event":"git:*"}`, h)
	if fault != nil || out.String() != `{"event":{"type":"git:push","data":{"n":1}}}` {
		t.Errorf("%s %v", out, fault)
	}
}

func TestRefuses(t *testing.T) {
	for fields, problem := range map[string]string{
		`{}`:                     "executionId: want executionId, run, event or file",
		`{"file":"a","run":"r"}`: "file: want run or file, not both",
		`{"file":"a"}`:           "until: a file has no end: want until (error or match) or timeoutMs",
		`{"file":"a","until":"finished","timeoutMs":5}`: "until: a file has no end: want error or match",
		`{"file":"a","timeoutMs":5}`:                    "",
		`{"file":"a","until":"match"}`:                  "",
		`{"executionId":"x","from":"start"}`:            "from: from requires file",
		`{"run":"r","until":"finished"}`:                "",
		`{"run":"r","until":"match"}`:                   "run: rules and until require executionId or file",
		`{"file":"a","until":"error"}`:                  "until: error requires rules: without rules no line is an error",
		`{"executionId":"x","event":"e"}`:               "event: want executionId or event, not both",
		`{"event":"e","until":"finished"}`:              "event: rules and until require executionId or file",
		`{"executionId":"$build.execution"}`:            "",
	} {
		got := sdktest.Problems(t, sdktest.Only(watch.Step()), "watch", fields)
		if problem == "" && len(got) > 0 || problem != "" && (len(got) != 1 || got[0] != problem) {
			t.Errorf("%s: %q, want %q", fields, got, problem)
		}
	}
	for _, fields := range []string{`{}`, `{"executionId":""}`} {
		if _, fault := sdktest.Run(t, sdktest.Only(watch.Step()), "watch", fields, sdktest.New(t)); fault == nil || fault.Field != "executionId" {
			t.Errorf("%s: %v", fields, fault)
		}
	}
}

// Specification: "Besides executions it watches a child run, an event pattern, and a file
// that grows".
func TestWatchesOtherThingsThanExecutions(t *testing.T) {
	const id = "01a208d2-7163-78e5-9039-70c7415ae6a9"
	for _, tt := range []struct{ fields, function, request, answer, want string }{
		{`{"run":"` + id + `","timeoutMs":50}`, "sentinel_wait", `{"run":"` + id + `","timeoutMs":50}`,
			`{"timedOut":false,"result":{"run":"r","success":false,"status":"failed","error":{"code":"plugin","message":"no rule"}}}`,
			`{"success":false,"status":"failed","run":"` + id + `","output":null,"error":{"code":"plugin","message":"no rule"},"finished":true,"text":"failed: no rule"}`},
		{`{"executionId":"` + id + `","until":"finished"}`, "sentinel_wait", `{"run":"` + id + `"}`,
			`{"timedOut":false,"result":{"run":"r","status":"completed","variables":{"n":2}}}`,
			`{"success":true,"status":"completed","run":"` + id + `","output":null,"variables":{"n":2},"n":2,"finished":true,"text":"completed"}`},
		{`{"event":"a:*","timeoutMs":7}`, "sentinel_wait", `{"event":"a:*","timeoutMs":7}`, `{"timedOut":false,"event":{"type":"a:b"}}`, `{"event":{"type":"a:b"}}`},
		{`{"file":"a.log","until":"match","from":"start","rules":[{"pattern":"x","classification":"info"}],"timeoutMs":9}`, "sentinel_watch",
			`{"file":"a.log","from":"start","rules":[{"classification":"info","pattern":"x"}],"timeoutMs":9,"until":"match"}`, `{"file":"a.log","text":"x"}`, `{"file":"a.log","text":"x"}`},
		{`{"executionId":"x1","timeoutMs":9}`, "sentinel_watch", `{"executionId":"x1","timeoutMs":9,"until":"finished"}`, `{"text":"x"}`, `{"text":"x"}`},
	} {
		h := sdktest.New(t).OK(tt.function, tt.answer)
		out, fault := sdktest.Run(t, sdktest.Only(watch.Step()), "watch", tt.fields, h)
		if fault != nil || out.String() != tt.want {
			t.Errorf("%s: got  %s %v\nwant %s", tt.fields, out, fault, tt.want)
		}
		if diff := cmp.Diff([]string{tt.request}, h.Requests(tt.function)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.fields, diff)
		}
	}
	for _, fields := range []string{`{"run":""}`, `{"file":""}`, `{"event":""}`, `{"executionId":"` + id + `","rules":[{"pattern":"x","classification":"info"}]}`} {
		if _, fault := sdktest.Run(t, sdktest.Only(watch.Step()), "watch", fields, sdktest.New(t)); fault == nil || fault.Code != "bad_fields" {
			t.Errorf("%s: %v", fields, fault)
		}
	}
}
