package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Each resource is a command under another name: what a request becomes.
func TestRequestsBecomeCalls(t *testing.T) {
	tests := []struct {
		method, path, body string
		headers            []string
		command, params    string
	}{
		{"POST", "/v1/commands/code/read", `{"path":"a"}`, nil, "code/read", `{"path":"a"}`},
		{"POST", "/v1/commands/code/read", ``, nil, "code/read", `{}`},
		{"GET", "/v1/plugins", ``, nil, "plugin/list", `{}`},
		{"GET", "/v1/sentinels?tag=x", ``, nil, "sentinel/list", `{"tag":"x","only":"sentinels"}`},
		{"POST", "/v1/sentinels", `{"name":"A"}`, nil, "sentinel/create", `{"definition":{"name":"A"}}`},
		{"GET", "/v1/sentinels/a", ``, nil, "sentinel/export", `{"sentinelId":"a"}`},
		{"PUT", "/v1/sentinels/a", `{"name":"A"}`, []string{`If-Match: "4"`}, "sentinel/update", `{"sentinelId":"a","definition":{"name":"A"},"revision":4}`},
		{"PUT", "/v1/sentinels/a", `{"name":"A"}`, []string{`If-Match: *`}, "sentinel/update", `{"sentinelId":"a","definition":{"name":"A"}}`},
		{"DELETE", "/v1/sentinels/a", ``, []string{`If-Match: 4`}, "sentinel/delete", `{"sentinelId":"a","revision":4}`},
		{"GET", "/v1/sentinels/a/triggers", ``, nil, "sentinel/triggers", `{"sentinelId":"a"}`},
		{"GET", "/v1/sentinels/a/triggers?next=5", ``, nil, "sentinel/triggers", `{"next":5,"sentinelId":"a"}`},
		{"GET", "/v1/sentinels/a/steps", ``, nil, "sentinel/step/list", `{"sentinelId":"a"}`},
		{"POST", "/v1/sentinels/a/steps", `{"index":2,"step":{"command":"x"}}`, nil, "sentinel/step/add", `{"sentinelId":"a","index":2,"step":{"command":"x"}}`},
		{"POST", "/v1/sentinels/a/steps", `{"index":2,"step":{}}`, []string{`If-Match: "9"`}, "sentinel/step/add", `{"sentinelId":"a","index":2,"step":{},"revision":9}`},
		{"PUT", "/v1/sentinels/a/steps/1.then.0", `{"type":"wait"}`, []string{`If-Match: "1"`}, "sentinel/step/update", `{"sentinelId":"a","address":"1.then.0","step":{"type":"wait"},"revision":1}`},
		{"PATCH", "/v1/sentinels/a/steps/1", `{"command":"x"}`, []string{`If-Match: "1"`}, "sentinel/step/update", `{"sentinelId":"a","address":"1","params":{"command":"x"},"revision":1}`},
		{"PATCH", "/v1/sentinels/a/steps/1", `{"command":"x"}`, []string{`If-Match: "0123456789abcdef0123456789abcdef"`}, "sentinel/step/update", `{"sentinelId":"a","address":"1","params":{"command":"x"},"hash":"0123456789abcdef0123456789abcdef"}`},
		{"DELETE", "/v1/sentinels/a/steps/1", ``, []string{`If-Match: "1"`}, "sentinel/step/remove", `{"sentinelId":"a","address":"1","revision":1}`},
		{"GET", "/v1/sentinels/a/revisions", ``, nil, "sentinel/revisions", `{"sentinelId":"a"}`},
		{"GET", "/v1/sentinels/a/revisions/3", ``, nil, "sentinel/revision", `{"sentinelId":"a","revision":3}`},
		{"GET", "/v1/sentinels/a/diff?from=1&to=3", ``, nil, "sentinel/diff", `{"sentinelId":"a","from":1,"to":3}`},
		{"POST", "/v1/sentinels/a/rollback", `{"to":2}`, nil, "sentinel/rollback", `{"sentinelId":"a","to":2}`},
		{"POST", "/v1/sentinels/a/runs", `{"inputs":{"q":1}}`, nil, "sentinel/start", `{"sentinelId":"a","inputs":{"q":1}}`},
		{"GET", "/v1/runs?sentinel=a&status=failed&limit=3&before=r9", ``, nil, "sentinel/list", `{"sentinelId":"a","status":"failed","limit":3,"before":"r9","only":"runs"}`},
		{"GET", "/v1/runs/r1", ``, nil, "sentinel/status", `{"run":"r1"}`},
		{"GET", "/v1/runs/r1?brief=true", ``, nil, "sentinel/status", `{"run":"r1","brief":true}`},
		{"GET", "/v1/sentinels/a/status?after=7", ``, nil, "sentinel/status", `{"sentinelId":"a","after":7}`},
		{"GET", "/v1/runs/r1/result", ``, nil, "sentinel/result", `{"run":"r1"}`},
		{"GET", "/v1/runs/r1/result?wait=2s", ``, nil, "sentinel/await", `{"run":"r1","timeoutMs":2000}`},
		{"GET", "/v1/runs/r1/trace", ``, nil, "sentinel/trace", `{"run":"r1"}`},
		{"POST", "/v1/runs/r1/stop", ``, nil, "sentinel/stop", `{"run":"r1"}`},
		{"POST", "/v1/runs/r1/pause", `{}`, nil, "sentinel/pause", `{"run":"r1"}`},
		{"POST", "/v1/runs/r1/resume", `{"maxIterations":5}`, nil, "sentinel/resume", `{"run":"r1","maxIterations":5}`},
		{"POST", "/v1/runs/r1/decide", `{"verdict":"approve"}`, nil, "sentinel/decide", `{"run":"r1","verdict":"approve"}`},
		{"POST", "/v1/runs/r1/decide", `{"run":"r1","verdict":"approve"}`, nil, "sentinel/decide", `{"run":"r1","verdict":"approve"}`},
		{"POST", "/v1/runs/r1/retry", `{"from":"2"}`, nil, "sentinel/retry", `{"run":"r1","from":"2"}`},
		{"POST", "/v1/runs/r1/fork", `{"iteration":2}`, nil, "sentinel/fork", `{"run":"r1","iteration":2}`},
		{"GET", "/v1/events?pattern=git:*&limit=5", ``, nil, "events/tail", `{"pattern":"git:*","limit":5}`},
		{"POST", "/v1/events", `{"event":"git:push","data":[1]}`, nil, "events/emit", `{"event":"git:push","data":[1]}`},
		{"GET", "/tickets?state=ready,draft&q=a&limit=2", ``, nil, "ticket/list", `{"state":["ready","draft"],"query":"a","limit":2}`},
		{"GET", "/api/tickets?status=done", ``, nil, "ticket/list", `{"state":["done"]}`},
		{"POST", "/api/tickets", `{"title":"a"}`, nil, "ticket/create", `{"title":"a"}`},
		{"GET", "/tickets/needs-review", ``, nil, "ticket/list", `{"state":["needs_review","blocked","on_hold"]}`},
		{"GET", "/tickets/stuck", ``, nil, "ticket/list", `{"stuck":true}`},
		{"GET", "/tickets/stats", ``, nil, "ticket/stats", `{}`},
		{"POST", "/tickets/claim", `{"agent_id":"a"}`, nil, "ticket/claim", `{"agent_id":"a"}`},
		{"POST", "/tickets/T-1/claim", ``, nil, "ticket/claim", `{"id":"T-1"}`},
		{"GET", "/tickets/T-1", ``, nil, "ticket/get", `{"id":"T-1"}`},
		{"GET", "/tickets/T-1/verification", ``, nil, "ticket/get", `{"id":"T-1"}`},
		{"PUT", "/tickets/T-1", `{"status":"done"}`, nil, "ticket/update", `{"id":"T-1","status":"done"}`},
		{"PATCH", "/tickets/T-1", `{"priority":3}`, nil, "ticket/update", `{"id":"T-1","priority":3}`},
		{"DELETE", "/tickets/T-1", ``, nil, "ticket/delete", `{"id":"T-1"}`},
		{"GET", "/tickets/T-1/activity?category=error&limit=3&offset=2", ``, nil, "ticket/activity", `{"id":"T-1","category":["error"],"limit":3,"offset":2}`},
		{"POST", "/tickets/T-1/activity", `{"category":"error"}`, nil, "ticket/log", `{"id":"T-1","category":"error"}`},
		{"POST", "/tickets/T-1/comments", `{"text":"x"}`, nil, "ticket/comment", `{"id":"T-1","text":"x"}`},
		{"GET", "/tickets/T-1/attempts", ``, nil, "ticket/attempts", `{"id":"T-1"}`},
		{"GET", "/tickets/rules?state=proposed,active", ``, nil, "ticket/rules", `{"state":["proposed","active"]}`},
		{"POST", "/tickets/rules", `{"text":"a"}`, nil, "ticket/add-rule", `{"text":"a"}`},
		{"POST", "/tickets/rules/R-1/decide", `{"action":"accept"}`, nil, "ticket/decide-rule", `{"rule":"R-1","action":"accept"}`},
		{"GET", "/tickets/T-1/context?max_bytes=20000", ``, nil, "ticket/context", `{"id":"T-1","max_bytes":20000}`},
		{"POST", "/api/tickets/T-1/context", `{"token":3}`, nil, "ticket/context", `{"id":"T-1","token":3}`},
		{"GET", "/tickets/T-1/children", ``, nil, "ticket/children", `{"id":"T-1"}`},
		{"GET", "/tickets/T-1/impact", ``, nil, "ticket/dependents", `{"id":"T-1"}`},
		{"POST", "/tickets/T-1/dependencies", `{"add":["T-2"]}`, nil, "ticket/depend", `{"id":"T-1","add":["T-2"]}`},
		{"POST", "/tickets/T-1/files", `{"files":[]}`, nil, "ticket/files", `{"id":"T-1","files":[]}`},
		{"POST", "/tickets/T-1/heartbeat", `{"token":1}`, nil, "ticket/heartbeat", `{"id":"T-1","token":1}`},
		{"POST", "/tickets/T-1/complete", `{"token":1}`, nil, "ticket/complete", `{"id":"T-1","token":1}`},
		{"POST", "/tickets/T-1/release", `{"token":1}`, nil, "ticket/release", `{"id":"T-1","token":1}`},
		{"POST", "/tickets/T-1/fail", `{"token":1}`, nil, "ticket/fail", `{"id":"T-1","token":1}`},
		{"POST", "/tickets/T-1/cancel", `{"error":"x"}`, nil, "ticket/cancel", `{"id":"T-1","error":"x"}`},
		{"POST", "/api/rag/search", `{"query": "engine failTicket processTicket error handling", "limit": 8}`, nil, "rag/search", `{"query":"engine failTicket processTicket error handling","limit":8}`},
		{"POST", "/tickets/T-1/reject", `{"token":1}`, nil, "ticket/reject", `{"id":"T-1","token":1}`},
		{"POST", "/tickets/T-1/escalate", `{"token":1}`, nil, "ticket/escalate", `{"id":"T-1","token":1}`},
		{"POST", "/tickets/T-1/decide", `{"action":"reject"}`, nil, "ticket/decide", `{"id":"T-1","action":"reject"}`},
		{"GET", "/inbox?kind=ticket,doubt&limit=2", ``, nil, "inbox/list", `{"kind":["ticket","doubt"],"limit":2}`},
		{"POST", "/verify", `{"ticket_id":"T-1"}`, nil, "verify/run", `{"ticket_id":"T-1"}`},
		{"GET", "/status/T-1", ``, nil, "verify/status", `{"id":"T-1"}`},
		{"GET", "/verify/T-1/history?limit=2", ``, nil, "verify/history", `{"id":"T-1","limit":2}`},
		{"POST", "/tickets/T-1/requeue", ``, nil, "ticket/decide", `{"id":"T-1","action":"release"}`},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		reg := commands(t, map[string]any{tt.command: `{"run":"r9","sentinelId":"a","revision":5,"ticket":{"id":"T-1"}}`})
		s := open(t, api.Options{Commands: reg})
		got := s.do(tt.method, tt.path, tt.body, tt.headers...)
		if got.status/100 != 2 {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.status, got.body)
			continue
		}
		calls := reg.made()
		if len(calls) != 1 || calls[0].Command != tt.command || calls[0].By != command.ByUser || !command.SameJSON(calls[0].Params, json.RawMessage(tt.params)) {
			t.Errorf("%s %s called %s %s, want %s %s", tt.method, tt.path, calls[0].Command, calls[0].Params, tt.command, tt.params)
		}
		seen[tt.command] = true
	}
	for _, route := range open(t, api.Options{}).api.Routes() {
		if route.Command != "" && !seen[route.Command] {
			t.Errorf("%s: no request of this test calls %q", route.String(), route.Command)
		}
	}
}

func TestRefusedRequests(t *testing.T) {
	reg := commands(t, map[string]any{
		"sentinel/list": `{}`, "sentinel/start": `{}`, "sentinel/stop": `{}`, "sentinel/create": `{}`, "sentinel/update": `{}`, "sentinel/step/update": `{}`, "events/tail": `{}`,
		"sentinel/diff": `{}`, "sentinel/delete": `{}`,
	})
	s := open(t, api.Options{Commands: reg})
	for _, tt := range []struct {
		method, path, body, header string
		status                     int
		field                      string
	}{
		{"GET", "/v1/runs?satus=failed", ``, ``, 400, "satus"},
		{"GET", "/v1/runs?limit=x", ``, ``, 400, "limit"},
		{"GET", "/v1/runs?limit=1&limit=2", ``, ``, 400, "limit"},
		{"GET", "/v1/runs?limit=%zz", ``, ``, 400, ""},
		{"GET", "/v1/sentinels/a/diff?from=1.5", ``, ``, 400, "from"},
		{"POST", "/v1/runs/r1/stop", `{"run":"r2"}`, ``, 400, "run"},
		{"POST", "/v1/sentinels/a/runs", `{"sentinelId":"b"}`, ``, 400, "sentinelId"},
		{"POST", "/v1/sentinels/a/runs", `[1]`, ``, 400, ""},
		{"POST", "/v1/sentinels/a/runs", `{"a":`, ``, 400, "a"},
		{"POST", "/v1/sentinels", ``, ``, 400, ""},
		{"POST", "/v1/sentinels", `null`, ``, 400, ""},
		{"POST", "/v1/commands/sentinel/stop", `{"a":1}}`, ``, 400, ""},
		{"DELETE", "/v1/sentinels/a", `{"x":1}`, `If-Match: "1"`, 400, ""},
		{"PUT", "/v1/sentinels/a", `{}`, ``, 428, "If-Match"},
		{"PATCH", "/v1/sentinels/a/steps/0", `{}`, ``, 428, "If-Match"},
		{"PUT", "/v1/sentinels/a", `{}`, `If-Match: W/"3"`, 400, "If-Match"},
		{"PUT", "/v1/sentinels/a", `{}`, `If-Match: "3", "4"`, 400, "If-Match"},
		{"PUT", "/v1/sentinels/a", `{}`, `If-Match: "0"`, 400, "If-Match"},
		{"PUT", "/v1/sentinels/a", `{}`, `If-Match: "+3"`, 400, "If-Match"},
		{"PUT", "/v1/sentinels/a", `{}`, `If-None-Match: *`, 400, "If-None-Match"},
	} {
		headers := []string{}
		if tt.header != "" {
			headers = append(headers, tt.header)
		}
		got := s.do(tt.method, tt.path, tt.body, headers...)
		if got.status != tt.status || got.problem.Field != tt.field || got.problem.Code != abi.BadFields {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, got.status, got.body)
		}
	}
	if calls := reg.made(); len(calls) != 0 {
		t.Errorf("called %+v", calls)
	}
}

func TestAnswers(t *testing.T) {
	s := open(t, api.Options{Commands: commands(t, map[string]any{
		"sentinel/list":      `{"sentinels":[{"sentinelId":"a"}],"runs":[{"id":"r"}],"next":"r","nextSentinel":"a"}`,
		"sentinel/create":    `{"sentinelId":"a","revision":1}`,
		"sentinel/export":    `{"sentinelId":"a","revision":7,"definition":{}}`,
		"sentinel/start":     `{"run":"r1","status":"running"}`,
		"sentinel/step/list": `{"sentinelId":"a","revision":7,"steps":[{"address":"0","type":"wait"},{"address":"0.then.1","id":"say","type":"emit"}]}`,
		"code/none":          ``,
	})})
	if got := s.do("GET", "/v1/runs", ""); got.body != `{"next":"r","runs":[{"id":"r"}]}` {
		t.Errorf("runs: %s", got.body)
	}
	if got := s.do("GET", "/v1/sentinels", ""); got.body != `{"next":"a","sentinels":[{"sentinelId":"a"}]}` {
		t.Errorf("sentinels: %s", got.body)
	}
	if got := s.do("POST", "/v1/sentinels", "{}"); got.status != 201 || got.header.Get("Location") != "/v1/sentinels/a" || got.header.Get("ETag") != `"1"` {
		t.Errorf("create: %d %v", got.status, got.header)
	}
	if got := s.do("POST", "/v1/sentinels/a/runs", ""); got.status != 201 || got.header.Get("Location") != "/v1/runs/r1" {
		t.Errorf("start: %d %v", got.status, got.header)
	}
	if got := s.do("GET", "/v1/sentinels/a", ""); got.header.Get("ETag") != `"7"` || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("export: %v", got.header)
	}
	for _, have := range []string{`"7"`, `W/"7"`, `"1", "7"`, `*`} {
		if got := s.do("GET", "/v1/sentinels/a", "", "If-None-Match: "+have); got.status != http.StatusNotModified || got.body != "" {
			t.Errorf("with %s: %d %s", have, got.status, got.body)
		}
	}
	if got := s.do("GET", "/v1/sentinels/a", "", `If-None-Match: "6"`); got.status != 200 {
		t.Errorf("with an old tag: %d", got.status)
	}
	want := `{"address":"0.then.1","id":"say","revision":7,"sentinelId":"a","type":"emit"}`
	for _, address := range []string{"0.then.1", "say"} {
		if got := s.do("GET", "/v1/sentinels/a/steps/"+address, ""); got.body != want || got.header.Get("ETag") != `"7"` {
			t.Errorf("step %s: %s", address, got.body)
		}
	}
	if got := s.do("GET", "/v1/sentinels/a/steps/1", ""); got.status != 404 || got.problem.Field != "address" {
		t.Errorf("no such step: %d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/runs/r1/fork", "{}"); got.status != 404 || !strings.Contains(got.problem.Detail, `"sentinel/fork"`) {
		t.Errorf("a command that is not there: %d %s", got.status, got.body)
	}
}

// R3: a stale edit learns where the definition is now and what changed.
func TestStaleEdit(t *testing.T) {
	conflict := &abi.Error{Code: abi.Conflict, Message: "revision conflict: have 3, current is 5", Hint: "read it again"}
	fakes := map[string]any{
		"sentinel/update": conflict,
		"sentinel/export": `{"revision":5}`,
		"sentinel/diff":   `{"changes":[{"path":"steps.0"}]}`,
	}
	reg := commands(t, fakes)
	s := open(t, api.Options{Commands: reg})
	got := s.do("PUT", "/v1/sentinels/a", "{}", `If-Match: "3"`)
	if got.status != http.StatusPreconditionFailed || got.problem.Revision != 5 || got.problem.Code != abi.Conflict || got.problem.Hint != conflict.Hint ||
		string(got.problem.Changes) != `{"changes":[{"path":"steps.0"}]}` {
		t.Errorf("%d %s", got.status, got.body)
	}
	if calls := reg.made(); !command.SameJSON(calls[2].Params, json.RawMessage(`{"sentinelId":"a","from":3,"to":5}`)) {
		t.Errorf("asked for %s", calls[2].Params)
	}
	// The old revision is gone, or the command is not there: no changes.
	delete(fakes, "sentinel/diff")
	s = open(t, api.Options{Commands: commands(t, fakes)})
	if got := s.do("PUT", "/v1/sentinels/a", "{}", `If-Match: "3"`); got.status != 412 || got.problem.Revision != 5 || got.problem.Changes != nil {
		t.Errorf("without a diff: %d %s", got.status, got.body)
	}
	// A conflict about something else stays one.
	if got := s.do("PUT", "/v1/sentinels/a", "{}", `If-Match: "5"`); got.status != http.StatusConflict {
		t.Errorf("another conflict: %d %s", got.status, got.body)
	}
	if got := s.do("PUT", "/v1/sentinels/a", "{}", `If-Match: *`); got.status != http.StatusConflict {
		t.Errorf("whatever is there: %d %s", got.status, got.body)
	}
}

// R4: a run with edits of its own differs by its hash.
func TestTagOfARun(t *testing.T) {
	old, now := strings.Repeat("0", 64), strings.Repeat("a", 64)
	s := open(t, api.Options{Commands: commands(t, map[string]any{
		"sentinel/export":      `{"sentinelId":"a","run":"r1","revision":3,"edit":2,"hash":"` + now + `"}`,
		"sentinel/step/update": &abi.Error{Code: abi.Conflict, Message: "made on another definition"},
	})})
	if got := s.do("GET", "/v1/sentinels/r1", ""); got.header.Get("ETag") != `"`+now+`"` {
		t.Errorf("ETag %s", got.header.Get("ETag"))
	}
	if got := s.do("PATCH", "/v1/sentinels/r1/steps/0", "{}", `If-Match: "`+old+`"`); got.status != 412 || got.problem.Revision != 3 {
		t.Errorf("stale: %d %s", got.status, got.body)
	}
	if got := s.do("PATCH", "/v1/sentinels/r1/steps/0", "{}", `If-Match: "`+now+`"`); got.status != 409 {
		t.Errorf("another conflict: %d %s", got.status, got.body)
	}
}

// C3: a key reaches commands that can promise to act once, and no others.
func TestIdempotencyKey(t *testing.T) {
	reg := commands(t, map[string]any{"sentinel/start!": `{"run":"r"}`, "sentinel/stop": `{}`, "code/read?": `{}`})
	s := open(t, api.Options{Commands: reg})
	for _, tt := range []struct {
		path, key string
		status    int
		want      string
	}{
		{"/v1/sentinels/a/runs", "k-1", 201, "k-1"},
		{"/v1/commands/sentinel/start", `"k-1"`, 200, "k-1"},
		{"/v1/commands/code/read", "k-1", 200, ""},
		{"/v1/commands/sentinel/stop", "k-1", 400, ""},
		{"/v1/sentinels/a/runs", "two words", 400, ""},
		{"/v1/sentinels/a/runs", strings.Repeat("k", 201), 400, ""},
	} {
		before := len(reg.made())
		got := s.do("POST", tt.path, "{}", "Idempotency-Key: "+tt.key)
		if got.status != tt.status || tt.status == 400 && got.problem.Field != "Idempotency-Key" {
			t.Errorf("%s with %.20q: %d %s", tt.path, tt.key, got.status, got.body)
		}
		calls := reg.made()[before:]
		if tt.status == 400 && len(calls) != 0 || tt.status != 400 && calls[0].Key != tt.want {
			t.Errorf("%s with %.20q called %+v", tt.path, tt.key, calls)
		}
	}
}

func TestDescribeCommands(t *testing.T) {
	c := command.NewDynamic("code/read", "Read a file.", json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`), nil,
		command.Options{Effect: command.Reads}, func(_ context.Context, _ *command.Call) (json.RawMessage, error) { return nil, nil })
	reg := commands(t, nil)
	if err := reg.Add(c); err != nil {
		t.Fatal(err)
	}
	s := open(t, api.Options{Commands: reg})
	want := `{"name":"code/read","summary":"Read a file.","input":{"type":"object","properties":{"path":{"type":"string"}}},"effect":"reads","readOnly":true,"idempotent":false}`
	if diff := cmp.Diff("["+want+"]", s.do("GET", "/v1/commands", "").body); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, s.do("GET", "/v1/commands/code/read", "").body); diff != "" {
		t.Error(diff)
	}
	if got := s.do("GET", "/v1/commands/code/rea", ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/commands/code/read", `{"path":1}`); got.status != 400 || got.problem.Code != abi.BadFields {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/commands/code/read", `{"path":"a"}`); got.body != "null" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
