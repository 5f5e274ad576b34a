package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const traceText = `{"run":{"id":"r1"},"iterations":[
 {"number":3,"revision":1,"hash":"h1","steps":[]},
 {"number":4,"revision":2,"hash":"h2","steps":[
  {"address":"0","path":"0","type":"shell","start":"2026-01-02T03:04:05Z","durationMs":1.5,"output":{"exitCode":0},"outputTo":"said","ended":true,
   "attempts":[{"number":1,"fields":{"command":"a"},"error":{"code":"timeout","message":"slow"}},{"number":2,"fields":{"command":"b"}}]},
  {"address":"1","path":"1","type":"loop","start":"2026-01-02T03:04:05Z","ended":false,
   "attempts":[{"number":1,"fields":{"count":2},"steps":[
     {"address":"1.steps.0","path":"1#0.steps.0","type":"command","start":"2026-01-02T03:04:05Z","error":{"code":"denied","message":"no"},"ended":true,"attempts":[]},
     {"address":"1.steps.1","path":"1#0.steps.1","start":"2026-01-02T03:04:05Z","skipped":"condition","ended":true}]}]}
 ]}]}`

// What went into each step and what came out, nested ones too.
func TestRunSteps(t *testing.T) {
	s := open(t, api.Options{Commands: commands(t, map[string]any{"sentinel/trace": traceText})})
	want := `{"run":"r1","iteration":4,"revision":2,"hash":"h2","steps":[` +
		`{"path":"0","address":"0","type":"shell","state":"ok","start":"2026-01-02T03:04:05Z","durationMs":1.5,"in":{"command":"b"},"out":{"exitCode":0},"variables":{"said":{"exitCode":0}},"tries":2},` +
		`{"path":"1","address":"1","type":"loop","state":"running","start":"2026-01-02T03:04:05Z","in":{"count":2},"tries":1},` +
		`{"path":"1#0.steps.0","address":"1.steps.0","type":"command","state":"failed","start":"2026-01-02T03:04:05Z","error":{"code":"denied","message":"no"},"tries":0},` +
		`{"path":"1#0.steps.1","address":"1.steps.1","state":"skipped","skipped":"condition","start":"2026-01-02T03:04:05Z","tries":0}]}`
	if diff := cmp.Diff(want, s.do("GET", "/v1/runs/r1/steps", "").body); diff != "" {
		t.Error(diff)
	}
	if got := s.do("GET", "/v1/runs/r1/steps?iteration=3", ""); !strings.Contains(got.body, `"iteration":3,"revision":1`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	got := s.do("GET", "/v1/runs/r1/steps/1%230.steps.0?iteration=4", "")
	if got.status != 200 || !strings.HasPrefix(got.body, `{"run":"r1","iteration":4,"revision":2,"path":"1#0.steps.0"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("GET", "/v1/runs/r1/steps/0", ""); !strings.Contains(got.body, `"attempts":[{"number":1`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	for path, field := range map[string]string{"/v1/runs/r1/steps?iteration=9": "iteration", "/v1/runs/r1/steps/7": "path"} {
		if got := s.do("GET", path, ""); got.status != 404 || got.problem.Field != field || got.problem.Hint == "" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := s.do("GET", "/v1/runs/r1/steps?iteration=x", ""); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestLogs(t *testing.T) {
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "{\"n\":%d}\n", i)
	}
	text.WriteString(`{"n":15`) // still being written
	logs := func(_ context.Context, run sentinels.RunID) (io.ReadCloser, error) {
		switch run {
		case "r1":
			return io.NopCloser(strings.NewReader(text.String())), nil
		case "quiet":
			return nil, fmt.Errorf("open: %w", fs.ErrNotExist)
		}
		return nil, errors.New("disk")
	}
	s := open(t, api.Options{Logs: logs, Commands: commands(t, map[string]any{"sentinel/status": `{}`})})
	for _, tt := range []struct {
		query       string
		first, next string
		lines       int
	}{
		{"", `{"n":0}`, "1000", 1000},
		{"?offset=1000", `{"n":1000}`, "1500", 500},
		{"?offset=3&limit=2", `{"n":3}`, "5", 2},
		{"?offset=1500", ``, "1500", 0},
		{"?offset=9000", ``, "1500", 0},
		{"?tail=2", `{"n":1498}`, "1500", 2},
		{"?tail=10000", `{"n":0}`, "1500", 1500},
	} {
		got := s.do("GET", "/v1/runs/r1/logs"+tt.query, "")
		lines := strings.Fields(got.body)
		if got.status != 200 || got.header.Get("Content-Type") != "application/x-ndjson" || got.header.Get("Sentinel-Next-Offset") != tt.next ||
			len(lines) != tt.lines || tt.lines > 0 && lines[0] != tt.first {
			t.Errorf("%q: %d, next %s, %d lines, %.60s", tt.query, got.status, got.header.Get("Sentinel-Next-Offset"), len(lines), got.body)
		}
	}
	for _, query := range []string{"?offset=-1", "?limit=0", "?limit=10001", "?tail=0", "?tail=1&offset=1", "?tail=1&limit=1", "?lines=1"} {
		if got := s.do("GET", "/v1/runs/r1/logs"+query, ""); got.status != 400 || got.problem.Field == "" {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got := s.do("GET", "/v1/runs/quiet/logs", ""); got.status != 200 || got.body != "" || got.header.Get("Sentinel-Next-Offset") != "0" {
		t.Errorf("a run that told nothing: %d %s", got.status, got.body)
	}
	if got := s.do("GET", "/v1/runs/bad/logs", ""); got.status != 500 {
		t.Errorf("a file that cannot be read: %d", got.status)
	}
	s = open(t, api.Options{Logs: logs, Commands: commands(t, map[string]any{"sentinel/status": notFound("no run")})})
	if got := s.do("GET", "/v1/runs/r1/logs", ""); got.status != 404 || got.problem.Code != abi.NotFound {
		t.Errorf("no such run: %d %s", got.status, got.body)
	}
}
