package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
)

func TestMembers(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`: ``,
		`{"type":"object","properties":{"b":{"type":"integer","default":3},"a":{"type":["null","string"],"description":"words"},"z":{}},"required":["z","b"]}`: `
z any required
b integer required (default 3)
a string|null words`,
		`{"type":"object","properties":{"list":{"type":["null","array"],"items":{"type":"object","properties":{"at":{"type":"string","format":"date-time"}},"required":["at"]}},
			"kind":{"type":"string","enum":["x","y"]},"of":{"type":"object","additionalProperties":{"type":"array","items":{"type":"number"}}},"open":{"type":"object","additionalProperties":true}}}`: `
kind string (x, y)
list array|null
list[].at string required (date-time)
of object
of.* array required
of.*[] number required
open object`,
		`{"type":"object","properties":{"root":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","properties":{"name":{"type":"string"},"steps":{"type":"array","items":{"$ref":"#/$defs/Node"}}}}}}`: `
root object
root.name string
root.steps array
root.steps[] object required as root`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/s"}}}`: `
a any`,
	} {
		list, err := command.Members(json.RawMessage(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		var got strings.Builder
		for _, m := range list {
			required := ""
			if m.Required {
				required = " required"
			}
			got.WriteString(strings.TrimRight(fmt.Sprintf("\n%s %s%s %s", m.Path, m.Type, required, m.Text), " "))
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", schema, diff)
		}
	}
	if _, err := command.Members(json.RawMessage(`{"properties":[]}`)); err == nil {
		t.Error("a schema that is not one is read without an error")
	}
}
