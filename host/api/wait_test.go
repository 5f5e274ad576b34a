package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Finding 18 of writing sentinels with the binary alone: over HTTP there was no
// way to wait for a run's end, and no result of a run.
func TestFinding18WaitOverHTTP(t *testing.T) {
	over := `{"run":"r1","status":"completed","output":7}`
	await := reply(func(_ context.Context, call *command.Call) (json.RawMessage, error) {
		switch string(call.Params) {
		case `{"run":"r1","timeoutMs":1500}`:
			return json.RawMessage(over), nil
		case `{"run":"r1","timeoutMs":20}`:
			return nil, abi.New(abi.Timeout, "it has not ended after 20 ms")
		}
		return nil, abi.New(abi.NotFound, "no run "+string(call.Params))
	})
	s := open(t, api.Options{Commands: commands(t, map[string]any{
		"sentinel/start!": `{"run":"r1","sentinelId":"a","status":"running"}`, "sentinel/await?~": await,
		"sentinel/result?": &abi.Error{Code: abi.Conflict, Message: "result of run r1: it is running"},
	})})
	start := "/v1/sentinels/a/runs"
	for _, tt := range []struct {
		method, path string
		status       int
		body         string // or a part of it
	}{
		{"POST", start + "?wait=1.5s", 201, `{"result":` + over + `,"run":"r1","sentinelId":"a","status":"completed"}`},
		{"POST", start + "?wait=20ms", 201, `{"run":"r1","sentinelId":"a","status":"running"}`},
		{"POST", start + "?wait=1h", 201, `{"run":"r1","sentinelId":"a","status":"running"}`}, // it has started: no error may hide that
		{"POST", start, 201, `{"run":"r1","sentinelId":"a","status":"running"}`},
		{"POST", start + "?wait=5", 400, `query: wait \"5\" is not a duration`},
		{"POST", start + "?wait=-1s", 400, "30s or 5m"},
		{"GET", "/v1/runs/r1/result?wait=1.5s", 200, over},
		{"GET", "/v1/runs/r1/result?wait=20ms", 409, "it is running"},
		{"GET", "/v1/runs/r1/result", 409, "it is running"},
		{"GET", "/v1/runs/r2/result?wait=1s", 404, "no run"},
		{"GET", "/v1/runs/r1/result?wait=soon", 400, "is not a duration"},
		{"GET", "/v1/runs/r1/result?for=1s", 400, "known: wait"},
	} {
		body := ""
		if tt.method == "POST" {
			body = "{}"
		}
		got := s.do(tt.method, tt.path, body)
		if got.status != tt.status || !strings.Contains(got.body, tt.body) || tt.status < 300 && got.body != tt.body {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.status, got.body)
		}
		if tt.status == 201 && got.header.Get("Location") != "/v1/runs/r1" {
			t.Errorf("%s: Location %q", tt.path, got.header.Get("Location"))
		}
	}
}

// TestAwaitHasALimit: one request waits no longer than the server allows, says
// that the run is still active, and hides no other error (C7).
func TestAwaitHasALimit(t *testing.T) {
	fakes := commands(t, map[string]any{
		"sentinel/start!": `{"run":"r1","status":"running"}`, "sentinel/result?": abi.New(abi.Conflict, "it is running"),
		"sentinel/await?~": reply(func(ctx context.Context, call *command.Call) (json.RawMessage, error) {
			if string(call.Params) == `{"run":"r2"}` {
				return nil, abi.New(abi.NotFound, "no run r2")
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}),
	})
	s, patient := open(t, api.Options{AwaitTime: time.Millisecond, Commands: fakes}), open(t, api.Options{AwaitTime: time.Hour, Commands: fakes})
	got := s.do("POST", "/v1/commands/sentinel/await", `{"run":"r1"}`)
	if got.status != 504 || got.problem.Code != abi.Timeout || got.problem.RetryAfterMs == 0 || !strings.Contains(got.body, "the run is still active after 1ms") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := patient.do("POST", "/v1/commands/sentinel/await", `{"run":"r2"}`); got.status != 404 {
		t.Errorf("another error: %d %s", got.status, got.body)
	}
	if got := s.do("GET", "/v1/runs/r1/result?wait=1h", ""); got.status != 409 {
		t.Errorf("result: %d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/sentinels/a/runs?wait=1h", "{}"); got.status != 201 {
		t.Errorf("start: %d %s", got.status, got.body)
	}
}
