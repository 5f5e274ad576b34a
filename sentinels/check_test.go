package sentinels_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestCheck(t *testing.T) {
	src := `{
  "name": "a",
  "inputs": {"query": "string"},
  "pipeline": [
    {"type": "llm", "prompt": "Look for $query in $plces, $$x", "outputTo": "places"},
    {"if": "$placs.length > 0 && $event", "then": [{"type": "shell", "command": "echo '$places' $HOME '$HOME'"}]},
    {"command": "code/shell/execute", "params": {"command": "echo $HOME $unset"}},
    {"each": "$places", "steps": [{"argv": ["$item", "$thing"]}]},
    {"type": "llm", "prompt": "x", "schema": {"$id": "$unset"}},
    {"definition": {"steps": [{"argv": ["$query", "$inner"]}]}}
  ],
  "loop": {"type": "until", "check": "$done"},
  "timeoutMs": 5
}`
	d := decode(t, src)
	got := sentinels.Check(d, types(t), "given").Locate("f.json", []byte(src), types(t)).Error()
	want := strings.Join([]string{
		`f.json:5:31: steps[0].prompt: $plces is never set`,
		"\tdid you mean \"places\"?",
		`f.json:6:12: steps[1].check: $placs is never set`,
		"\tdid you mean \"places\"?",
		`f.json:6:81: steps[1].then[0].command: $places is in single quotes, where the shell does not expand it`,
		"\tuse double quotes",
		`f.json:7:49: steps[2].params: $unset is never set`,
		"\tdeclare it under \"inputs\", or write \"$$\" for a dollar",
		`f.json:8:44: steps[3].steps[0].argv: $thing is never set`,
		"\tdeclare it under \"inputs\", or write \"$$\" for a dollar",
		`f.json:10:40: steps[5].definition.steps[0].argv: $inner is never set`,
		"\tdeclare it under \"inputs\", or write \"$$\" for a dollar",
		`f.json:12:38: loop.check: $done is never set`,
		"\tdeclare it under \"inputs\", or write \"$$\" for a dollar",
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestMarks checks that the format knows every mark of the ABI.
func TestMarks(t *testing.T) {
	for _, mark := range []string{abi.MarkExpression, abi.MarkSteps, abi.MarkBranches, abi.MarkShell, abi.MarkRaw,
		abi.MarkDefinition, abi.MarkTools, abi.MarkParams, abi.MarkVariable} {
		fields := []byte(`{"properties": {"x": {"` + abi.Keyword + `": "` + mark + `"}}}`)
		set, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{Type: "a", Fields: fields}})
		if err != nil {
			t.Errorf("%s: %v", mark, err)
			continue
		}
		if spec, _ := set.Lookup("a"); spec.Mark("x") != mark {
			t.Errorf("%s: mark %q", mark, spec.Mark("x"))
		}
	}
}
