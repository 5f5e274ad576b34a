package plugintest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/javascript"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// rolePlugin has step types whose outputs are the text of a field.
const rolePlugin = `const open = {type: "object", additionalProperties: true};
const say = (step, ctx) => { const f = step.fields; if (f.calls) ctx.now(); return JSON.parse(f.message ?? f.lines[0].text); };
sentinel.plugin({name: "kit", version: "1", permissions: [{use: "provide", names: ["command", "error_classifier", "output_classifier"], reason: "r"}], steps: {
	kit_command: {summary: "s", fields: open, output: {type: "object", properties: {n: {type: "integer"}}, required: ["n"], additionalProperties: false}, provides: {as: "command", name: "kit/c"}, run: say},
	kit_errors: {summary: "s", fields: open, provides: {as: "error_classifier"}, run: say},
	kit_lines: {summary: "s", fields: open, provides: {as: "output_classifier"}, run: say},
	kit_plain: {summary: "s", fields: open, run: say},
}});`

// TestRoles: a case whose output violates the contract of a role fails, even if it is what
// the case wants.
func TestRoles(t *testing.T) {
	module, err := javascript.Module("plugin.js", []byte(rolePlugin))
	if err != nil {
		t.Fatal(err)
	}
	h, err := guest.Open(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p, err := plugintest.Load(t.Context(), h, module, guest.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	lines := func(text string) string {
		return `{"lines":[{"text":` + quoted(text) + `,"stream":"stdout"},{"text":"b","stream":"stdout"}]}`
	}
	message := func(text string) string { return `{"message":` + quoted(text) + `,"source":"step"}` }
	for _, tt := range []struct{ step, fields, output, want string }{
		{"kit_command", message(`{"n":1}`), `{"n":1}`, ""},
		{"kit_command", message(`{"n":"1"}`), `{"n":"1"}`, "A9.2"},
		{"kit_errors", message(`null`), `null`, ""},
		{"kit_errors", message(`{"category":"api"}`), `{"category":"api"}`, ""},
		{"kit_errors", message(`{"category":"net"}`), `{"category":"net"}`, "A9.3"},
		{"kit_errors", `{"message":"null","source":"step","calls":true}`, `null`, "host calls of a role error_classifier are denied (A9.8)"},
		{"kit_lines", lines(`{"lines":[null,{"classification":"info"}]}`), `{"lines":[null,{"classification":"info"}]}`, ""},
		{"kit_lines", lines(`{"lines":[null]}`), `{"lines":[null]}`, "A9.4"},
		{"kit_plain", message(`{"category":"net"}`), `{"category":"net"}`, ""},
	} {
		r := sdktest.Try(t.Context(), p, sdktest.Case{Name: "c", Step: sdktest.Step{Type: tt.step, Fields: json.RawMessage(tt.fields)}, Output: json.RawMessage(tt.output)})
		if text := strings.Join(r.Problems, "; "); r.OK != (tt.want == "") || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s: %q, want %q", tt.step, tt.output, text, tt.want)
		}
	}
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}
