package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// registryOf is a host's registry as the API calls it.
type registryOf struct{ h *host.Host }

func (r registryOf) List() []command.Command                    { return r.h.Commands().List() }
func (r registryOf) Version() string                            { return r.h.Commands().Version() }
func (r registryOf) Lookup(name string) (command.Command, bool) { return r.h.Commands().Lookup(name) }

// Call calls as who made the request.
func (r registryOf) Call(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	return r.h.CallAs(ctx, call)
}

type anyToken struct{}

// Who takes every token for that of a person.
func (anyToken) Who(token string) (principal.Principal, bool) {
	return principal.Principal{Kind: principal.Person}, token != ""
}

// TestAPIOverTheEngine drives real runs over HTTP: define, start, page through
// runs, look into steps, read logs, and the document of the real registry.
func TestAPIOverTheEngine(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}, Logs: h.OpenRunLog})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	do := caller(t, srv, http.StatusOK, http.StatusCreated)
	do("POST", "/v1/sentinels", `{"name":"Five","steps":[{"type":"shell","command":"echo $inputs.n","outputTo":"said"}],"inputs":{"n":{"type":"number"}}}`, nil)
	var ids []string
	for n := range 5 {
		var started struct{ Run string }
		res := do("POST", "/v1/sentinels/five/runs", fmt.Sprintf(`{"inputs":{"n":%d}}`, n), &started)
		if res.Header.Get("Location") != "/v1/runs/"+started.Run {
			t.Errorf("Location %q", res.Header.Get("Location"))
		}
		if _, err := h.Runtime().Wait(t.Context(), sentinels.RunID(started.Run)); err != nil {
			t.Fatal(err)
		}
		ids = append([]string{started.Run}, ids...)
	}
	var paged []string
	for before := ""; ; {
		var page struct {
			Runs []struct{ ID string }
			Next string
		}
		do("GET", "/v1/runs?limit=2&sentinel=five&status=completed&before="+before, "", &page)
		for _, r := range page.Runs {
			paged = append(paged, r.ID)
		}
		if before = page.Next; before == "" {
			break
		}
	}
	if strings.Join(paged, " ") != strings.Join(ids, " ") {
		t.Errorf("pages have %v, want %v", paged, ids)
	}
	var list struct {
		Sentinels []struct{ RunCount int }
		Runs      []json.RawMessage
	}
	if do("GET", "/v1/sentinels", "", &list); len(list.Sentinels) != 1 || list.Sentinels[0].RunCount != 5 || list.Runs != nil {
		t.Errorf("sentinels: %+v", list)
	}
	var step struct {
		State     string
		In        struct{ Command string }
		Variables map[string]json.RawMessage
	}
	if do("GET", "/v1/runs/"+ids[0]+"/steps/0", "", &step); step.State != "ok" || !strings.Contains(string(step.Variables["said"]), `4\n`) {
		t.Errorf("step: %+v: %s", step, step.Variables["said"])
	}
	if res := do("GET", "/v1/runs/"+ids[0]+"/logs?tail=1", "", nil); res.Header.Get("Sentinel-Next-Offset") == "0" {
		t.Error("no log")
	}
	var doc struct{ Paths map[string]json.RawMessage }
	if do("GET", "/openapi.json", "", &doc); doc.Paths["/v1/commands/sentinel/start"] == nil {
		t.Error("the document lacks a command")
	}
}

// Finding 18 of writing sentinels with the binary alone: request bodies were
// {"type":"object"} though their commands have schemas.
func TestFinding18RequestBodies(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}, Schema: h.Schema})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	do := caller(t, srv, http.StatusOK, http.StatusCreated)
	type schema struct {
		Ref        string                     `json:"$ref"`
		Text       string                     `json:"description"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID   string `json:"operationId"`
			Body struct {
				Content map[string]struct{ Schema schema } `json:"content"`
			} `json:"requestBody"`
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
				Defs       map[string]json.RawMessage `json:"$defs"`
			}
		}
	}
	do("GET", "/openapi.json", "", &doc)
	bodies := map[string]schema{}
	for path, operations := range doc.Paths {
		for _, op := range operations {
			body, ok := op.Body.Content["application/json"]
			if !ok || path == "/v1/commands/{name}" {
				continue // any command's
			}
			s := body.Schema
			bodies[op.ID] = s
			if s.Ref == "" && len(s.Properties) == 0 && s.Text == "" && !strings.HasPrefix(path, "/v1/commands/") {
				t.Errorf("%s %s: the body is any object", op.ID, path)
			}
		}
	}
	definition := doc.Components.Schemas["Definition"]
	if bodies["createSentinel"].Ref != "#/components/schemas/Definition" || definition.Properties["steps"] == nil {
		t.Errorf("a definition is %+v", bodies["createSentinel"])
	}
	if bodies["replaceStep"].Ref != "#/components/schemas/Definition/$defs/step" || definition.Defs["step"] == nil {
		t.Errorf("a step is %+v", bodies["replaceStep"])
	}
	if s := bodies["startRun"]; s.Properties["inputs"] == nil || s.Properties["sentinelId"] != nil {
		t.Errorf("a start has %v", slices.Collect(maps.Keys(s.Properties)))
	}
	if s := bodies["decideRun"]; !slices.Equal(s.Required, []string{"verdict"}) || s.Properties["run"] != nil {
		t.Errorf("a decision has %v and needs %v", slices.Collect(maps.Keys(s.Properties)), s.Required)
	}
	if s := bodies["addStep"]; len(s.Required) > 0 && slices.Contains(s.Required, "sentinelId") {
		t.Errorf("a new step needs %v", s.Required)
	}

	// Started, waited for, and its result.
	do("POST", "/v1/sentinels", `{"id":"nap","steps":[{"type":"wait","durationMs":1},{"type":"set","values":{"n":7}}]}`, nil)
	var started struct {
		Run, Status string
		Result      struct{ Status string }
	}
	do("POST", "/v1/sentinels/nap/runs?wait=1m", "{}", &started)
	if started.Status != "completed" || started.Result.Status != "completed" {
		t.Errorf("%+v", started)
	}
	var result struct {
		Status    string
		Variables map[string]int
	}
	if do("GET", "/v1/runs/"+started.Run+"/result", "", &result); result.Status != "completed" || result.Variables["n"] != 7 {
		t.Errorf("%+v", result)
	}
}

// caller returns a function that sends requests with a token, wants one of the
// statuses and decodes the answer. A header is "Name: value".
func caller(t *testing.T, srv *httptest.Server, statuses ...int) func(method, path, body string, into any, headers ...string) *http.Response {
	return func(method, path, body string, into any, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		req.Header.Set("Content-Type", "application/json")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(statuses, res.StatusCode) {
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
		}
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatalf("%s %s: %s: %v", method, path, text, err)
			}
		}
		return res
	}
}

// TestAPIEdits edits a definition, and one run of it, with the revision that each
// edit was made on.
func TestAPIEdits(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	do := caller(t, srv, http.StatusOK, http.StatusCreated)
	const steps = "/v1/sentinels/edited/steps"
	do("POST", "/v1/sentinels", `{"name":"Edited","steps":[{"type":"wait","durationMs":3600000,"name":"first"}]}`, nil)
	caller(t, srv, http.StatusConflict)("POST", "/v1/sentinels", `{"name":"Edited","steps":[{"type":"wait","durationMs":1}]}`, nil)
	first := do("GET", steps+"/0", "", nil).Header.Get("ETag")
	if first != `"1"` {
		t.Fatalf("ETag %s", first)
	}
	second := do("PATCH", steps+"/0", `{"durationMs":7200000}`, nil, "If-Match: "+first).Header.Get("ETag")
	var stale struct {
		Revision int
		Changes  struct{ Changes []json.RawMessage }
	}
	caller(t, srv, http.StatusPreconditionFailed)("PATCH", steps+"/0", `{"durationMs":5}`, &stale, "If-Match: "+first)
	if second != `"2"` || stale.Revision != 2 || len(stale.Changes.Changes) == 0 {
		t.Errorf("second %s, stale %+v", second, stale)
	}
	caller(t, srv, http.StatusPreconditionRequired)("DELETE", steps+"/0", "", nil)
	do("POST", steps, `{"index":1,"step":{"type":"emit","event":"a:b"}}`, nil)
	do("PUT", steps+"/1", `{"type":"emit","event":"c:d"}`, nil, "If-Match: \"3\"")
	do("DELETE", steps+"/1", "", nil, "If-Match: \"4\"")
	caller(t, srv, http.StatusNotFound)("GET", steps+"/1", "", nil)
	if tag := do("POST", "/v1/sentinels/edited/rollback", `{"to":1}`, nil).Header.Get("ETag"); tag != `"6"` {
		t.Errorf("rolled back to %s", tag)
	}
	var revisions struct{ Revisions []struct{ Revision int } }
	if do("GET", "/v1/sentinels/edited/revisions", "", &revisions); len(revisions.Revisions) != 6 {
		t.Errorf("revisions %+v", revisions)
	}
	do("GET", "/v1/sentinels/edited/revisions/3", "", nil)
	do("GET", "/v1/sentinels/edited/diff?from=1&to=3", "", nil)

	// A run that waits, and is edited alone.
	var started struct{ Run string }
	do("POST", "/v1/sentinels/edited/runs", `{}`, &started)
	do("PATCH", "/v1/sentinels/"+started.Run+"/steps/0", `{"durationMs":3600001}`, nil, "If-Match: *")
	tag := do("GET", "/v1/sentinels/"+started.Run, "", nil).Header.Get("ETag")
	if len(tag) < 34 {
		t.Errorf("a run's own edit has ETag %s", tag)
	}
	do("PATCH", "/v1/sentinels/"+started.Run+"/steps/0", `{"durationMs":3600002}`, nil, "If-Match: "+tag)
	caller(t, srv, http.StatusPreconditionFailed)("PATCH", "/v1/sentinels/"+started.Run+"/steps/0", `{"durationMs":3600003}`, nil, "If-Match: "+tag)
	if tag := do("GET", steps, "", nil).Header.Get("ETag"); tag != `"6"` {
		t.Errorf("the sentinel is at %s", tag)
	}
	do("POST", "/v1/runs/"+started.Run+"/stop", ``, nil)
	do("DELETE", "/v1/sentinels/edited", "", nil, "If-Match: \"6\"")
	caller(t, srv, http.StatusNotFound)("GET", "/v1/sentinels/edited", "", nil)
}
