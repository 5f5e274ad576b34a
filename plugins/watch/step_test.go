package watch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/watch"
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

func TestEvent(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_wait", `{"timedOut":false,"event":{"type":"git:push","data":{"n":1}}}`)
	out, fault := sdktest.Run(t, sdktest.Only(watch.Step()), "watch", `{"event":"git:*"}`, h)
	if fault != nil || out.String() != `{"event":{"type":"git:push","data":{"n":1}}}` {
		t.Errorf("%s %v", out, fault)
	}
}

func TestRefuses(t *testing.T) {
	for fields, problem := range map[string]string{
		`{}`:                                 "executionId: want executionId or event",
		`{"executionId":"x","event":"e"}`:    "event: want executionId or event, not both",
		`{"event":"e","until":"finished"}`:   "event: rules and until require executionId",
		`{"executionId":"$build.execution"}`: "",
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
