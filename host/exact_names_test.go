package host_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// folded returns a name that encoding/json takes for the same: with U+017F for s, U+212A for
// k, or else a capital.
func folded(name string) string {
	for _, pair := range [][2]string{{"s", "\u017f"}, {"k", "\u212a"}} {
		if strings.Contains(name, pair[0]) {
			return strings.Replace(name, pair[0], pair[1], 1)
		}
	}
	if upper := strings.ToUpper(name); upper != name {
		return upper
	}
	return strings.ToLower(name)
}

// TestNamesAreExact: every command, and every route with a body, refuses a name that differs
// from a parameter by case or by a character that folds to the same, and a name that is given
// twice. The error names it.
func TestNamesAreExact(t *testing.T) {
	h := open(t, host.Options{})
	send := sendAs(t, h)
	refused := func(method, target, name, body string) {
		t.Helper()
		status, p, text := send("person", "", method, target, body)
		if status != http.StatusBadRequest || !strings.Contains(p.Detail, strconv.Quote(name)) {
			t.Errorf("%s %s with %s: %d %s, want 400 that names %q", method, target, body, status, text, name)
		}
	}
	must(t, h, "sentinel/create", `{"definition":{"name":"One","steps":[{"type":"shell","command":"true"}]}}`, nil)
	commands := 0
	for _, c := range h.Commands().List() {
		var schema struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(c.Input(), &schema); err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(schema.Properties))
		if len(names) == 0 {
			names = []string{"skip"} // any name is unknown
		}
		for _, name := range names[:min(len(names), 3)] {
			refused("POST", "/v1/commands/"+c.Name, folded(name), fmt.Sprintf(`{%q:1}`, folded(name)))
		}
		refused("POST", "/v1/commands/"+c.Name, names[0], fmt.Sprintf(`{%q:1,%q:2}`, names[0], names[0]))
		commands++
	}
	_, _, text := send("person", "", "GET", "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	routes := 0
	parts := regexp.MustCompile(`\{[^}]+\}`)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, op := range doc.Paths[path] {
			if op.RequestBody == nil || strings.HasPrefix(path, "/v1/hooks") || strings.HasPrefix(path, "/v1/commands/") {
				continue // the payload of a hook is data
			}
			target := parts.ReplaceAllString(strings.ReplaceAll(path, "{id}", "one"), "0")
			refused(strings.ToUpper(method), target, "\u017fteps", `{"`+"\u017f"+`teps":1}`)
			refused(strings.ToUpper(method), target, "steps", `{"steps":1,"steps":2}`)
			routes++
		}
	}
	if commands < 100 || routes < 20 {
		t.Errorf("%d commands and %d routes", commands, routes)
	}
}

// TestFoldedNamesInValuesDoNotCount: values whose schema is open are read by exact names, too.
func TestFoldedNamesInValuesDoNotCount(t *testing.T) {
	h := open(t, host.Options{})
	send := sendAs(t, h)
	for _, body := range []string{
		`{"title":"a","acceptance_criteria":{"checks":[{"type":"http_request","verify":{"path":"/","expect_status":200,"expect_` + "\u017f" + `tatus":500}}]}}`,
		`{"title":"a","acceptance_criteria":{"checks":[{"type":"http_request","verify":{"path":"/","` + "\u017f" + `ervice":{"command":"true"}}}]}}`,
		`{"title":"a","acceptance_criteria":{"checks":[{"type":"code_pattern","verify":{"file":"a","pattern":"a","Pattern":"b"}}]}}`,
	} {
		status, p, text := send("person", "", "POST", "/v1/commands/ticket/create", body)
		if status != http.StatusBadRequest || !strings.Contains(p.Detail, "acceptance_criteria.checks[0].verify.") && !strings.Contains(p.Detail, "checks[0].verify") || !strings.Contains(p.Detail, "unknown key") {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	must(t, h, "sentinel/create", `{"definition":{"name":"One","steps":[{"type":"set","values":{"a":"$event.subject","b":"$event.type"}}]}}`, nil)
	var started struct{ ID string }
	must(t, h, "sentinel/run", `{"sentinelId":"one","event":{"type":"t","source":"s","subject":"seen","`+"\u017f"+`ubject":"folded","Type":"folded"}}`, &started)
	var run struct{ Variables map[string]string }
	must(t, h, "sentinel/result", `{"run":"`+started.ID+`"}`, &run)
	if run.Variables["a"] != "seen" || run.Variables["b"] != "t" {
		t.Errorf("the event of the run: %v", run.Variables)
	}
}
