package host_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
)

// openAPI is what the test reads of the document.
type openAPI struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name, In string
			Schema   struct{ Type any }
		}
		RequestBody *struct{ Content map[string]any }
	}
}

// suggests matches a hint or text that lists or suggests known names.
var suggests = regexp.MustCompile(`did you mean|known:|it takes|takes no|one of|want `)

// TestProblemsHavePlaces: "No message of `validate` or the API lacks a place; each "unknown
// X" lists or suggests known ones." Every route gets bad bodies and bad query parameters,
// and every command bad parameters.
func TestProblemsHavePlaces(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	caller(t, srv, http.StatusCreated)("POST", "/v1/sentinels", `{"name": "there", "steps": [{"id": "s", "type": "shell", "command": "true"}]}`, nil)
	var doc openAPI
	caller(t, srv, http.StatusOK)("GET", "/openapi.json", "", &doc)
	send := func(method, target, body string) (int, httpproblem.Problem) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		req.Header.Set("If-Match", "*")
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var p httpproblem.Problem
		if res.StatusCode >= 400 && json.Unmarshal(text, &p) != nil {
			t.Errorf("%s %s: %d is no problem: %s", method, target, res.StatusCode, text)
		}
		return res.StatusCode, p
	}
	bodies, queries := 0, 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		target := regexp.MustCompile(`\{\w+\}`).ReplaceAllStringFunc(path, func(name string) string {
			return map[string]string{"{id}": "there", "{sentinel}": "there", "{address}": "0", "{revision}": "1", "{path}": "1", "{name}": "code/read", "{ticket}": "T-1", "{rule}": "R-1", "{run}": "01a20998-4961-7212-a55f-f9a0ad2199df"}[name]
		})
		for method, op := range doc.Paths[path] {
			method = strings.ToUpper(method)
			if strings.HasPrefix(path, "/v1/hooks") || path == "/ws" {
				continue // a webhook takes any body and query; the feed is no request
			}
			if op.RequestBody != nil {
				bodies++
				for body, wantPath := range map[string]string{`{"a":`: "", "{\"zzzz\":\n 1}": "zzzz", `[]`: "", `{"a": 1, "a": 2}`: ""} {
					status, p := send(method, target, body)
					switch {
					case status == http.StatusOK && body == `{"a": 1, "a": 2}`:
						t.Errorf("%s %s: %s: accepted", method, path, body)
					case status != http.StatusBadRequest:
						if wantPath == "" {
							t.Errorf("%s %s: %s: %d %s", method, path, body, status, p.Detail)
						}
					case p.Line < 1 || p.Column < 1:
						t.Errorf("%s %s: %s: no place: %+v", method, path, body, p)
					case wantPath != "" && !strings.Contains(p.Detail, "missing") && (p.Path != wantPath || p.Line > 2 || !suggests.MatchString(p.Detail+p.Hint)):
						t.Errorf("%s %s: %s: names nothing that is known: %+v", method, path, body, p)
					}
				}
			}
			if method != http.MethodGet || slices.Contains([]string{"/metrics", "/health", "/ready"}, path) {
				continue // what asks these adds parameters of its own
			}
			queries++
			status, p := send(method, target+"?zzzz=1", "")
			if status != http.StatusBadRequest || p.Field != "zzzz" || !suggests.MatchString(p.Detail+p.Hint) {
				t.Errorf("%s?zzzz=1: %d %+v", path, status, p)
			}
			for _, param := range op.Parameters {
				if param.In == "query" && fmt.Sprint(param.Schema.Type) == "integer" {
					if status, p := send(method, target+"?"+param.Name+"=many", ""); status != http.StatusBadRequest || p.Field != param.Name {
						t.Errorf("%s?%s=many: %d %+v", path, param.Name, status, p)
					}
				}
			}
		}
	}
	if bodies < 60 || queries < 15 {
		t.Errorf("found only %d routes with a body and %d without", bodies, queries)
	}
	for target, want := range map[string]string{
		"/v1/sentinels/their":     `did you mean "there"`,
		"/v1/commands/code/reed":  `did you mean "code/read"`,
		"/v1/sentinals":           "",
		"/v1/sentinels/there/stp": "",
	} {
		if status, p := send("GET", target, ""); status != http.StatusNotFound || !strings.Contains(p.Hint+p.Detail, want) || want == "" && p.Hint == "" {
			t.Errorf("%s: %d %+v", target, status, p)
		}
	}
}
