package host_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
)

// TestBadBodiesSayWhere: an error about a body names line, column and path of the
// text that the client sent, whichever part of the host found the mistake.
func TestBadBodiesSayWhere(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	created := caller(t, srv, http.StatusCreated)
	created("POST", "/v1/sentinels", `{"name":"There","steps":[{"type":"shell","command":"true"}]}`, nil)
	for name, c := range map[string]struct {
		method, path, body, header string
		line, column               int
		at, detail                 string
	}{
		"second steps": {"POST", "/v1/sentinels", "{\n  \"name\": \"a\",\n  \"steps\": [{\"type\": \"shell\", \"command\": \"true\"}],\n  \"steps\": []\n}", "",
			4, 3, "steps", `duplicate key "steps", first at line 3, column 3`},
		"not UTF-8":      {"POST", "/v1/sentinels", "{\"name\": \"a\xff\"}", "", 1, 12, "name", "not UTF-8"},
		"lone surrogate": {"POST", "/v1/events", `{"event": "a:b", "data": ["\udc00"]}`, "", 1, 28, "data", "half of a surrogate pair"},
		"number":         {"POST", "/v1/sentinels/there/runs", "{\"variables\": {\"x\":\n 1e999}}", "", 2, 2, "variables.x", "out of range"},
		"depth": {"POST", "/v1/sentinels", `{"name": ` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "",
			1, 73, "name" + strings.Repeat("[0]", 63), "nested more than 64 deep"},
		"cut off": {"POST", "/v1/sentinels", "{\"name\":\n", "", 2, 1, "name", "the text ends before the value does"},
		"after":   {"POST", "/v1/sentinels", "{} x", "", 1, 4, "", "text after the JSON value"},
		"unknown step type": {"POST", "/v1/sentinels", "{\n \"steps\": [\n  {\"type\": \"shell\", \"command\": \"true\"},\n  {\"type\": \"shel\"}],\n \"name\": \"a\"\n}", "",
			4, 12, "steps[1].type", `steps[1].type: unknown step type "shel"`},
		"missing name": {"POST", "/v1/sentinels", "\n{\"steps\": [{\"type\": \"shell\", \"command\": \"true\"}]}", "", 2, 1, "", "name is missing"},
		"replaced step": {"PUT", "/v1/sentinels/there/steps/0", "{\"type\": \"shell\",\n \"comand\": \"x\"}", "If-Match: *",
			2, 12, "comand", `unknown key "comand"`},
		"patched step":      {"PATCH", "/v1/sentinels/there/steps/0", "{\"argv\":\n 7}", "If-Match: *", 2, 2, "argv", "argv"},
		"unknown parameter": {"POST", "/v1/sentinels/there/runs", "{\n \"nputs\": {}\n}", "", 2, 11, "nputs", `field "nputs": is unknown`},
		"wrong type":        {"POST", "/v1/commands/sentinel/start", "{\"sentinelId\":\n 7}", "", 2, 2, "sentinelId", "must be string"},
		"definition in a command": {"POST", "/v1/commands/sentinel/create", "{\"definition\": {\"name\": \"a\",\n \"steps\": [{\"type\": \"shel\"}]}}", "",
			2, 21, "definition.steps[0].type", `unknown step type "shel"`},
		"path and body differ": {"POST", "/v1/sentinels/there/runs", `{"sentinelId": "other"}`, "", 1, 16, "sentinelId", "is not the one of the path"},
	} {
		t.Run(name, func(t *testing.T) {
			var headers []string
			if c.header != "" {
				headers = append(headers, c.header)
			}
			var p httpproblem.Problem
			caller(t, srv, http.StatusBadRequest)(c.method, c.path, c.body, &p, headers...)
			if p.Line != c.line || p.Column != c.column || p.Path != c.at || !strings.Contains(p.Detail, c.detail) {
				t.Errorf("%d:%d %q: %s\nwant %d:%d %q with %q", p.Line, p.Column, p.Path, p.Detail, c.line, c.column, c.at, c.detail)
			}
		})
	}
}
