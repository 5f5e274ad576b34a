package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Schemas of models' replies come from definitions, those of plugins' commands from plugins.
// Their patterns are bounded, and so is the work for one value.
func TestPatternsOfSchemasAreBounded(t *testing.T) {
	schema := func(pattern string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":%q}}}`, pattern)
	}
	slow := strings.Repeat("x{0,900}y|", 5) + "x"
	value := json.RawMessage(`{"a":"` + strings.Repeat("x", 200_000) + `"}`)
	for _, c := range []struct{ pattern, want string }{
		{strings.Repeat("x{0,900}y|", 6), "instructions, the limit is 10000"},
		{slow, "200008 bytes are too many for the patterns of the schema, the limit is "},
		{"^x+$", ""},
	} {
		err := command.ValidateJSON(json.RawMessage(schema(c.pattern)), value)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.20q: %v, want %q", c.pattern, err, c.want)
		}
	}
	if _, err := command.NewRegistry(dynamic("kit/a", "", schema(strings.Repeat("x{0,900}y|", 6)), `1`)); err == nil || !strings.Contains(err.Error(), "instructions, the limit is 10000") {
		t.Errorf("a command: %v", err)
	}
	r, err := command.NewRegistry(dynamic("kit/a", "", schema(slow), `1`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Call(t.Context(), &command.Call{Command: "kit/a", Params: value}); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "too many for the patterns") {
		t.Errorf("a call: %v", err)
	}
	if problems := r.CheckParams("kit/a", value, func(string) bool { return false }); len(problems) != 1 || !strings.Contains(problems[0].Message, "too many for the patterns") {
		t.Errorf("the parameters of a step: %v", problems)
	}
}
