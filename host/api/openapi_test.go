package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
)

var update = flag.Bool("update", false, "rewrite testdata/openapi.json")

// withCommands is an API whose commands have schemas of every shape: generated,
// recursive, dynamic with definitions of their own, none.
func withCommands(t *testing.T) *site {
	reg := commands(t, map[string]any{"a.b/c": `{}`, "a/b.c": `{}`})
	tree := json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://x/y","type":"object","properties":{
		"node":{"$ref":"#/$defs/node"},"self":{"$ref":"#"},"$ref":{"type":"string"},"pick":{"enum":[{"$ref":"#/kept"}]}},
		"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`)
	err := reg.Add(
		command.NewDynamic("mcp/x/tree", "Has definitions.", tree, tree, command.Options{Effect: command.Changes}, func(context.Context, *command.Call) (json.RawMessage, error) { return nil, nil }),
		command.New("code/read", "Read a file.", command.Options{Effect: command.Reads, Idempotent: true}, func(context.Context, *command.Call, struct {
			Path string `json:"path"`
		}) (struct {
			Text string `json:"text"`
		}, error) {
			return struct {
				Text string `json:"text"`
			}{}, nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, api.Options{Commands: reg, Version: "1.2.3"})
}

type openapiDocument struct {
	OpenAPI    string                                `json:"openapi"`
	Info       map[string]string                     `json:"info"`
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Parameters []struct {
		Name     string          `json:"name"`
		In       string          `json:"in"`
		Required bool            `json:"required"`
		Schema   json.RawMessage `json:"schema"`
	} `json:"parameters"`
	Responses map[string]json.RawMessage `json:"responses"`
	Security  []map[string][]string      `json:"security"`
	Access    string                     `json:"x-sentinel-access"`
}

func document(t *testing.T, s *site) ([]byte, openapiDocument) {
	t.Helper()
	got := s.do("GET", "/openapi.json", "")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	var d openapiDocument
	if err := json.Unmarshal([]byte(got.body), &d); err != nil {
		t.Fatal(err)
	}
	return []byte(got.body), d
}

// O1: the document has the table, the table has the document, each command is
// a path of its own.
func TestDocumentIsTheTable(t *testing.T) {
	s := withCommands(t)
	_, d := document(t, s)
	if d.OpenAPI != "3.1.0" || d.Info["title"] == "" || d.Info["version"] != "1.2.3" {
		t.Errorf("head: %s %v", d.OpenAPI, d.Info)
	}
	want := map[string]api.Route{}
	for _, route := range s.api.Routes() {
		want[strings.ToLower(route.Method)+" "+strings.ReplaceAll(route.Pattern, "...}", "}")] = route
	}
	for _, name := range []string{"a.b/c", "a/b.c", "mcp/x/tree", "code/read"} {
		want["post /v1/commands/"+name] = api.Route{Access: api.AccessToken}
	}
	ids := map[string]bool{}
	for path, item := range d.Paths {
		for method, raw := range item {
			route, ok := want[method+" "+path]
			if !ok {
				t.Errorf("%s %s is not in the table", method, path)
				continue
			}
			delete(want, method+" "+path)
			var op operation
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			checkOperation(t, path, op, route)
			if ids[op.ID] {
				t.Errorf("operationId %q is there twice", op.ID)
			}
			ids[op.ID] = true
		}
	}
	for name := range want {
		t.Errorf("%s is not in the document", name)
	}
}

var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

func checkOperation(t *testing.T, path string, op operation, route api.Route) {
	t.Helper()
	if op.ID == "" || op.Summary == "" || op.Responses["default"] == nil || len(op.Responses) != 2 {
		t.Errorf("%s: %+v", path, op)
	}
	if op.Access != string(route.Access) || (len(op.Security) == 1) != (route.Access == api.AccessToken) {
		t.Errorf("%s: access %q, security %v", path, op.Access, op.Security)
	}
	var named, given []string
	for _, m := range inPath.FindAllStringSubmatch(path, -1) {
		named = append(named, m[1])
	}
	for _, p := range op.Parameters {
		if p.Schema == nil {
			t.Errorf("%s: parameter %s has no schema", path, p.Name)
		}
		if p.In == "path" {
			given = append(given, p.Name)
			if !p.Required {
				t.Errorf("%s: %s is in the path and not required", path, p.Name)
			}
		}
	}
	if diff := cmp.Diff(named, given); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// O2: every reference leads somewhere, and every schema can be used.
func TestReferencesResolve(t *testing.T) {
	text, d := document(t, withCommands(t))
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	refs := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				if target, ok := inner.(string); ok && k == "$ref" && target != "#/kept" {
					if refs++; !leads(root, target) {
						t.Errorf("$ref %q leads nowhere", target)
					}
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(root)
	if refs < 20 {
		t.Errorf("only %d references", refs)
	}
	component := regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)
	for name := range d.Components.Schemas {
		if !component.MatchString(name) {
			t.Errorf("component %q", name)
		}
		// A relative name would be joined to the working directory, whose path need
		// not be a valid URL.
		const resource = "https://sentinel.example/openapi.json"
		c := jsonschema.NewCompiler()
		if err := c.AddResource(resource, root); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile(resource + "#/components/schemas/" + name); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	if !strings.Contains(string(text), `"enum":[{"$ref":"#/kept"}]`) {
		t.Error("a value was taken for a schema")
	}
}

// leads follows a JSON pointer.
func leads(root any, target string) bool {
	at := root
	for part := range strings.SplitSeq(strings.TrimPrefix(target, "#/"), "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if at, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return false
		}
	}
	return true
}

// The document follows the commands, and tells by its ETag that it did not.
func TestDocumentFollowsCommands(t *testing.T) {
	reg := commands(t, nil)
	s := open(t, api.Options{Commands: reg})
	first := s.do("GET", "/openapi.json", "")
	tag := first.header.Get("ETag")
	if got := s.do("GET", "/openapi.json", "", "If-None-Match: "+tag); got.status != http.StatusNotModified {
		t.Errorf("unchanged: %d", got.status)
	}
	c := command.NewDynamic("mcp/x/new", "New.", nil, nil, command.Options{Effect: command.Changes}, func(context.Context, *command.Call) (json.RawMessage, error) { return nil, nil })
	if err := reg.Add(c); err != nil {
		t.Fatal(err)
	}
	if got := s.do("GET", "/openapi.json", "", "If-None-Match: "+tag); got.status != 200 || !strings.Contains(got.body, "/v1/commands/mcp/x/new") {
		t.Errorf("with a new command: %d", got.status)
	}
	reg.Remove("mcp/x/new")
	if got := s.do("GET", "/openapi.json", ""); got.body != first.body {
		t.Error("equal commands make different documents")
	}
}

// The static part is what clients are written against: a change is meant.
func TestGoldenDocument(t *testing.T) {
	text, _ := document(t, open(t, api.Options{}))
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", " "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	const file = "testdata/openapi.json"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Errorf("run go test ./host/api -run Golden -update and review:\n%s", diff)
	}
}

func BenchmarkGetRun(b *testing.B) {
	a, err := api.New(api.Options{Commands: commands(b, map[string]any{"sentinel/status?": `{"id":"r"}`}), Tokens: oneToken(goodToken), Hosts: []string{"example.com"}})
	if err != nil {
		b.Fatal(err)
	}
	h := a.Handler()
	req := httptest.NewRequest(http.MethodGet, "/v1/runs/r", nil)
	req.Header.Set("Authorization", "Bearer "+goodToken)
	for b.Loop() {
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, req.Clone(b.Context())); rec.Code != 200 { // the handler adds to the context of its request
			b.Fatal(rec.Body)
		}
	}
}
