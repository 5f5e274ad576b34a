package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

type hooksFunc func(id sentinels.ID, trigger string, r triggers.Request) ([]triggers.Admission, error)

// Receive makes a function a receiver of webhooks.
func (f hooksFunc) Receive(_ context.Context, id sentinels.ID, trigger string, r triggers.Request) ([]triggers.Admission, error) {
	return f(id, trigger, r)
}

// guarded is an API in which everything that is reached says so.
func guarded(t *testing.T) (s *site, reached func() int) {
	var n atomic.Int64
	hit := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) })
	fakes := map[string]any{}
	a, err := api.New(api.Options{Commands: commands(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range a.Routes() {
		if route.Command != "" {
			fakes[route.Command] = `{}`
		}
	}
	reg := commands(t, fakes)
	s = open(t, api.Options{
		Commands: reg, Feed: hit, Metrics: hit,
		Hooks: hooksFunc(func(sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) {
			n.Add(1)
			return nil, nil
		}),
		Mounts: []api.Mount{{Method: http.MethodPost, Pattern: "/mounted/{file...}", Name: "mounted", Access: api.AccessToken, Summary: "Of others.", Handler: hit}},
	})
	return s, func() int { return int(n.Load()) + len(reg.made()) }
}

// G1, G3: without a token every route is shut but those that say otherwise, and
// those are exactly the ones named here.
func TestEveryRouteWantsItsToken(t *testing.T) {
	s, reached := guarded(t)
	without := map[string]bool{
		"GET /health": true, "GET /ready": true,
		"GET /v1/hooks/{sentinel}": true, "POST /v1/hooks/{sentinel}": true, "PUT /v1/hooks/{sentinel}": true,
		"GET /v1/hooks/{sentinel}/{trigger}": true, "POST /v1/hooks/{sentinel}/{trigger}": true, "PUT /v1/hooks/{sentinel}/{trigger}": true,
	}
	for _, auth := range []string{"", "Bearer wrong", "Bearer " + goodToken + "x", "Basic " + goodToken, goodToken, "Bearer"} {
		s.auth = auth
		for _, route := range s.api.Routes() {
			before := reached()
			got := s.do(route.Method, fill(route.Pattern), "")
			if without[route.String()] {
				if got.status == http.StatusUnauthorized && !strings.Contains(route.Pattern, "hooks") {
					t.Errorf("%s: %d", route.String(), got.status)
				}
				continue
			}
			if got.status != http.StatusUnauthorized || got.problem.Code != abi.Denied || got.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %q: %d %s", route.String(), auth, got.status, got.body)
			}
			if reached() != before {
				t.Errorf("%s with %q reached its handler", route.String(), auth)
			}
		}
		for _, path := range []string{"/", "/v1", "/v1/nothing", "/debug/pprof/", "/V1/runs", "/v1/runs/", "/v1/../health", "/health/../v1/runs"} {
			if got := s.do(http.MethodGet, path, ""); got.status != http.StatusUnauthorized {
				t.Errorf("GET %s with %q: %d", path, auth, got.status)
			}
		}
	}
	s.auth = "Bearer " + goodToken
	for _, route := range s.api.Routes() {
		if got := s.do(route.Method, fill(route.Pattern), ""); got.status == http.StatusUnauthorized {
			t.Errorf("%s with its token: 401", route.String())
		}
	}
}

// G2: a name that is not ours gets nowhere, on no route, whatever the caller has.
func TestForeignHost(t *testing.T) {
	s, reached := guarded(t)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, route := range s.api.Routes() {
		for _, host := range []string{"evil.example", "evil.example" + port, "localhost", "localhost:1", "127.0.0.1", "localhost." + port, "127.0.0.1.evil.example" + port, "[::2]" + port} {
			if got := s.do(route.Method, fill(route.Pattern), "", "Host: "+host); got.status != http.StatusForbidden {
				t.Errorf("%s at %s: %d", route.String(), host, got.status)
			}
		}
	}
	if n := reached(); n != 0 {
		t.Errorf("%d requests reached a handler", n)
	}
	for _, host := range []string{"localhost" + port, "LOCALHOST" + port, "127.0.0.1" + port, "[::1]" + port} {
		if got := s.do(http.MethodGet, "/health", "", "Host: "+host); got.status != http.StatusOK {
			t.Errorf("at %s: %d %s", host, got.status, got.body)
		}
	}
}

func TestConfiguredHosts(t *testing.T) {
	s := open(t, api.Options{Hosts: []string{"Sentinel.example", "other.example:99"}})
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for host, want := range map[string]int{
		"sentinel.example": 200, "sentinel.example" + port: 200, "sentinel.example:1": 403, "other.example:99": 200, "other.example": 403,
		"other.example" + port: 403, "x.sentinel.example": 403,
	} {
		if got := s.do(http.MethodGet, "/health", "", "Host: "+host); got.status != want {
			t.Errorf("%s: %d, want %d", host, got.status, want)
		}
	}
	for _, bad := range []string{"", "*", "*.example", "a/b", "http://a", "a:b:c", "u@h"} {
		if _, err := api.New(api.Options{Commands: commands(t, nil), Hosts: []string{bad}}); err == nil {
			t.Errorf("host %q was taken", bad)
		}
	}
}

// G2: a page of another origin gets nowhere, with a good token and a good host.
func TestForeignPage(t *testing.T) {
	s, reached := guarded(t)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, route := range s.api.Routes() {
		for _, h := range []string{
			"Origin: https://evil.example", "Origin: null", "Origin: http://localhost:1", "Origin: http://localhost", "Origin: http://evil.example" + port,
			"Origin: file://localhost" + port, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: odd",
		} {
			got := s.do(route.Method, fill(route.Pattern), "", h)
			if got.status != http.StatusForbidden {
				t.Errorf("%s with %s: %d", route.String(), h, got.status)
			}
			for name := range got.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s answers with %s", route.String(), name)
				}
			}
		}
	}
	if n := reached(); n != 0 {
		t.Errorf("%d requests reached a handler", n)
	}
	for _, h := range []string{"Origin: http://localhost" + port, "Origin: http://127.0.0.1" + port, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none"} {
		if got := s.do(http.MethodGet, "/v1/runs", "", h); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", h, got.status, got.body)
		}
	}
}

// G5: what a page can send without asking is not JSON.
func TestContentType(t *testing.T) {
	s, reached := guarded(t)
	for _, route := range s.api.Routes() {
		if route.Method == http.MethodGet || strings.Contains(route.Pattern, "hooks") || strings.Contains(route.Pattern, "mounted") || strings.Contains(route.Pattern, "tickets") || route.Pattern == "/verify" {
			continue
		}
		before := reached()
		for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "x"} {
			if got := s.do(route.Method, fill(route.Pattern), "{}", "Content-Type: "+media); got.status != http.StatusUnsupportedMediaType {
				t.Errorf("%s with %s: %d", route.String(), media, got.status)
			}
		}
		if got := s.do(route.Method, fill(route.Pattern), "{}", "Content-Type:"); got.status != http.StatusUnsupportedMediaType {
			t.Errorf("%s with a body of no type: %d", route.String(), got.status)
		}
		if reached() != before {
			t.Errorf("%s reached its handler", route.String())
		}
	}
	if got := s.do(http.MethodPost, "/v1/runs/r/stop", "", "Content-Type:"); got.status != http.StatusOK {
		t.Errorf("no body, no type: %d %s", got.status, got.body)
	}
	if got := s.do(http.MethodPost, "/v1/runs/r/stop", "{}", "Content-Type: application/json; charset=utf-8"); got.status != http.StatusOK {
		t.Errorf("with a charset: %d %s", got.status, got.body)
	}
}

// "These routes read JSON whatever the content type says, after the Origin check"
func TestTicketsReadAnyType(t *testing.T) {
	s, reached := guarded(t)
	for _, path := range []string{"/tickets", "/api/tickets", "/tickets/T-1/fail"} {
		before := reached()
		for _, header := range []string{"Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
			if got := s.do(http.MethodPost, path, "{}", "Content-Type: text/plain", header); got.status != http.StatusForbidden {
				t.Errorf("POST %s of another page, %s: %d", path, header, got.status)
			}
		}
		if reached() != before {
			t.Errorf("POST %s of another page reached its handler", path)
		}
		for _, media := range []string{"application/x-www-form-urlencoded", "text/plain", "application/json", ""} {
			if got := s.do(http.MethodPost, path, `{"title":"x"}`, "Content-Type: "+media); got.status/100 != 2 {
				t.Errorf("POST %s with %q: %d %s", path, media, got.status, got.body)
			}
		}
		if got := s.do(http.MethodPost, path, `title=x`, "Content-Type: application/x-www-form-urlencoded"); got.status != http.StatusBadRequest {
			t.Errorf("POST %s of a form: %d", path, got.status)
		}
	}
}

// G4: names and paths that are not plain are refused before any route sees them.
func TestBadPaths(t *testing.T) {
	s, reached := guarded(t)
	long := strings.Repeat("a", 300)
	for _, under := range []string{"/v1/sentinels/", "/v1/runs/", "/v1/hooks/", "/v1/commands/", "/v1/sentinels/ok/steps/", "/v1/runs/ok/steps/", "/v1/sentinels/ok/revisions/"} {
		for _, bad := range []string{"..", ".", "%2e%2e", "%2E", "..%2f..%2fetc", "a%2f..", "%00", "a%00", "%0a", "a%5cb", "-a", "a%20b", "%e2%80%ae", "\uff0e\uff0e", long, "a//b", "a%2f%2fb"} {
			got := s.do(http.MethodGet, under+bad, "")
			if got.status != http.StatusBadRequest && got.status != http.StatusNotFound {
				t.Errorf("GET %s%.30s: %d", under, bad, got.status)
			}
			if got.status == http.StatusNotFound && !strings.Contains(bad, "%") && strings.Contains(bad, "..") {
				t.Errorf("GET %s%.30s: %d", under, bad, got.status)
			}
		}
	}
	if n := reached(); n != 0 {
		t.Errorf("%d requests reached a handler", n)
	}
	for path, want := range map[string]int{"/v1/sentinels/%2e%2e": 400, "/v1/sentinels/a%2fb": 400, "/v1/sentinels/" + long: 400, "/v1/runs/%00": 400, "/v1/sentinels/x/revisions/0": 400} {
		if got := s.do(http.MethodGet, path, ""); got.status != want || got.problem.Code != abi.BadFields {
			t.Errorf("GET %.60s: %d %s", path, got.status, got.body)
		}
	}
}

func TestMethods(t *testing.T) {
	s, reached := guarded(t)
	if got := s.do(http.MethodOptions, "/v1/sentinels/a", ""); got.status != http.StatusNoContent || got.header.Get("Allow") != "GET, HEAD, PUT, DELETE, OPTIONS" {
		t.Errorf("OPTIONS: %d %q", got.status, got.header.Get("Allow"))
	}
	if got := s.do(http.MethodDelete, "/v1/runs", ""); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("DELETE: %d %q", got.status, got.header.Get("Allow"))
	}
	for _, m := range []string{"TRACE", "PROPFIND", "get"} {
		if got := s.do(m, "/v1/runs", ""); got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", m, got.status)
		}
	}
	if got := s.do(http.MethodGet, "/v1/nothing", ""); got.status != http.StatusNotFound {
		t.Errorf("nothing: %d", got.status)
	}
	if reached() != 0 {
		t.Error("a handler was reached")
	}
	if got := s.do(http.MethodHead, "/v1/runs", ""); got.status != http.StatusOK || got.body != "" {
		t.Errorf("HEAD: %d %q", got.status, got.body)
	}
	before := reached()
	if got := s.do(http.MethodHead, "/v1/hooks/a", ""); got.status == http.StatusAccepted || reached() != before {
		t.Errorf("HEAD of a hook: %d", got.status)
	}
	s.auth = ""
	if got := s.do(http.MethodOptions, "/v1/sentinels/a", ""); got.status != http.StatusUnauthorized {
		t.Errorf("OPTIONS without a token: %d", got.status)
	}
	if got := s.do(http.MethodOptions, "/health", ""); got.status != http.StatusNoContent {
		t.Errorf("OPTIONS of an open route: %d", got.status)
	}
}

// G8: a fault of the host is a name for the caller and a stack for the log.
func TestFaults(t *testing.T) {
	var log strings.Builder
	s := open(t, api.Options{
		Logger: textLogger(&log),
		Commands: commands(t, map[string]any{
			"sentinel/status": errors.New("disk on fire\ngoroutine 7 [running]:\nsecret/path.go"),
			"events/tail":     reply(func(context.Context, *command.Call) (json.RawMessage, error) { panic("boom") }),
		}),
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oops") }),
	})
	for _, path := range []string{"/v1/runs/r", "/v1/events", "/metrics"} {
		got := s.do(http.MethodGet, path, "")
		if got.status != http.StatusInternalServerError || !strings.HasPrefix(got.problem.Instance, "urn:sentinel:fault:") {
			t.Errorf("GET %s: %d %s", path, got.status, got.body)
		}
		if strings.Contains(got.body, "goroutine") || strings.Contains(got.body, ".go") {
			t.Errorf("GET %s tells: %s", path, got.body)
		}
		if !strings.Contains(log.String(), got.problem.Instance) {
			t.Errorf("GET %s: the log does not name %s", path, got.problem.Instance)
		}
	}
	if !strings.Contains(log.String(), "guard_test.go") {
		t.Error("the log has no stack")
	}
}

func TestObserve(t *testing.T) {
	seen := make(chan api.Observation, 1)
	s := open(t, api.Options{Observe: func(o api.Observation) { seen <- o }, Commands: commands(t, map[string]any{"sentinel/status": notFound("no run")})})
	for _, tt := range []struct {
		path, route string
		status      int
	}{{"/health", "GET /health", 200}, {"/v1/runs/r", "GET /v1/runs/{run}", 404}, {"/nope", "other", 404}} {
		s.do(http.MethodGet, tt.path, "")
		if o := <-seen; o.Route != tt.route || o.Status != tt.status {
			t.Errorf("%s: %+v", tt.path, o)
		}
	}
}

// Without tokens only this machine gets in, and every change needs JSON.
func TestNoAuth(t *testing.T) {
	s := open(t, api.Options{NoAuth: true, Commands: commands(t, map[string]any{"sentinel/list": `{"runs":[]}`, "sentinel/stop": `{}`})})
	s.auth = ""
	if got := s.do(http.MethodGet, "/v1/runs", ""); got.status != http.StatusOK {
		t.Errorf("from here: %d %s", got.status, got.body)
	}
	if got := s.do(http.MethodPost, "/v1/runs/r/stop", "", "Content-Type:"); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("no type: %d", got.status)
	}
	if got := s.do(http.MethodPost, "/v1/runs/r/stop", ""); got.status != http.StatusOK {
		t.Errorf("JSON: %d %s", got.status, got.body)
	}
	a, err := api.New(api.Options{NoAuth: true, Commands: commands(t, nil), Hosts: []string{"example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/v1/commands", nil)
	req.RemoteAddr = "192.0.2.7:99"
	a.Handler().ServeHTTP(rec, req)
	if rec.Code != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", rec.Code)
	}
}

// The zero value of Options admits no client.
func TestNoTokensNoEntry(t *testing.T) {
	a, err := api.New(api.Options{Commands: commands(t, nil), Hosts: []string{"example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, auth := range []string{"", "Bearer ", "Bearer x"} {
		rec := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/v1/commands", nil)
		req.Header.Set("Authorization", auth)
		a.Handler().ServeHTTP(rec, req)
		if rec.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", auth, rec.Code)
		}
	}
}

// Local serves the control socket: any host, a token also with NoAuth and for webhooks, and
// the rest holds.
func TestLocal(t *testing.T) {
	a, err := api.New(api.Options{Commands: commands(t, map[string]any{"sentinel/stop": `{}`}), Tokens: oneToken(goodToken), NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, path, media string
		want                int
	}{
		{"GET", "/ready", "", 200}, {"GET", "/v1/commands", "none", 401}, {"GET", "/v1/nothing", "none", 401}, {"GET", "/ws", "none", 401}, {"GET", "/v1/hooks/x", "none", 401}, {"OPTIONS", "/v1/hooks/x", "none", 401},
		{"GET", "/v1/commands", "", 200}, {"POST", "/v1/runs/r/stop", "text/plain", 415}, {"POST", "/v1/runs/r/stop", "application/json", 200}, {"GET", "/v1/runs/-x", "", 400}} {
		rec := httptest.NewRecorder()
		req := httptest.NewRequest(tt.method, "http://whatever"+tt.path, strings.NewReader("{}"))
		if tt.method == http.MethodGet {
			req.Body = http.NoBody
		}
		req.Header.Set("Content-Type", tt.media)
		if tt.media != "none" {
			req.Header.Set("Authorization", "Bearer "+goodToken)
		}
		if a.Local().ServeHTTP(rec, req); rec.Code != tt.want {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, rec.Code, rec.Body)
		}
	}
}

// The table is the only way into the mux.
func TestOneWayIntoTheMux(t *testing.T) {
	entries, err := fs.Glob(dir, "*.go")
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, name := range entries {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Handle" || sel.Sel.Name == "HandleFunc") {
					places = append(places, set.Position(call.Pos()).String())
				}
			}
			return true
		})
	}
	if len(places) != 1 || !strings.HasPrefix(places[0], "api.go:") {
		t.Errorf("handlers are registered at %v, want register in api.go alone", places)
	}
}

// Every line of the table leads to itself, and mounts that clash are refused.
func TestTable(t *testing.T) {
	s, _ := guarded(t)
	names := map[string]bool{}
	for _, route := range s.api.Routes() {
		if names[route.Name] {
			t.Errorf("name %q is there twice", route.Name)
		}
		names[route.Name] = true
		if pattern := s.api.Pattern(httptest.NewRequest(route.Method, fill(route.Pattern), nil)); pattern != route.String() {
			t.Errorf("%s leads to %q", route.String(), pattern)
		}
	}
	ok := http.NotFoundHandler()
	for _, m := range []api.Mount{
		{Method: "GET", Pattern: "/v1/runs", Name: "x", Access: api.AccessToken, Summary: "s", Handler: ok},
		{Method: "GET", Pattern: "/v1/{x}/{y}/trace", Name: "x", Access: api.AccessToken, Summary: "s", Handler: ok},
		{Method: "GET", Pattern: "/x", Name: "x", Summary: "s", Handler: ok},
		{Method: "GET", Pattern: "/x", Name: "x", Access: api.AccessToken, Summary: "s"},
		{Method: "", Pattern: "/x", Name: "x", Access: api.AccessToken, Summary: "s", Handler: ok},
		{Method: "GET", Pattern: "x", Name: "x", Access: api.AccessToken, Summary: "s", Handler: ok},
	} {
		if _, err := api.New(api.Options{Commands: commands(t, nil), Mounts: []api.Mount{m}}); err == nil {
			t.Errorf("mount %+v was taken", m)
		}
	}
}
