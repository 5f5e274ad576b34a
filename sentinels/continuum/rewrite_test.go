package continuum_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels/continuum"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// in puts a text into the second step of a definition.
func in(field, text string) string {
	quoted, _ := json.Marshal(text)
	return `{"name":"a","steps":[{"type":"shell","cmd":"make"},{"` + field + `":` + string(quoted) + `}]}`
}

// "{{steps.N.output|success|error|exitCode|data.path|type|index|durationMs}}, {{input(s).x}},
// {{named.label.field}}, {{loop.N.field}}, {{env.VAR}}"
func TestSpecInterpolation(t *testing.T) {
	for _, tt := range []struct{ field, from, to string }{
		{"prompt", "fix {{steps.0.output}}!", `fix $steps["step0"].output!`},
		{"prompt", "{{ steps.0.data.items.0.a-b }}", `$steps["step0"].items[0]["a-b"]`},
		{"prompt", "{{steps.0.exitCode}}", `$steps["step0"].exitCode`},
		{"prompt", "{{input.dir}} and {{inputs.dir}}", "$inputs.dir and $inputs.dir"},
		{"prompt", "{{named.build.text}}", "$build.text"},
		{"prompt", "{{event.data.x}}", "$event.data.x"},
		{"prompt", "{{iteration}}", "$index"},
		{"prompt", "{{name}}", "$name"},
		{"cmd", "echo {{env.HOME}}", "echo ${HOME}"},
		{"if", "{{steps.0.success}} && '{{input.mode}}' == 'fast'", `($steps["step0"].exitCode === 0) && $inputs.mode == 'fast'`},
		{"while", `"{{named.a.b}}" !== 'x'`, `$a.b !== 'x'`},
	} {
		out, changes, problems := continuum.Rewrite([]byte(in(tt.field, tt.from)), "f.json")
		var got struct{ Steps []map[string]string }
		if err := json.Unmarshal(out, &got); err != nil || len(problems) > 0 || len(changes) == 0 {
			t.Errorf("%s: %v %v %v", tt.from, err, problems, changes)
			continue
		}
		if diff := cmp.Diff(tt.to, got.Steps[1][tt.field]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.from, diff)
		}
		if strings.Contains(tt.to, "step0") && got.Steps[0]["id"] != "step0" {
			t.Errorf("%s: the step has no id: %s", tt.from, out)
		}
		if strings.Contains(tt.to, "$inputs") && !strings.Contains(string(out), `"inputs": {"`) {
			t.Errorf("%s: the input is not declared: %s", tt.from, out)
		}
	}
}

func TestNoForm(t *testing.T) {
	for from, why := range map[string]string{
		"{{steps.0.error}}": "f.json:1:62: steps[1].prompt: {{steps.0.error}}: a step has no error here", "{{steps.7.output}}": "there is no step 7",
		"{{steps.0}}": "want steps.INDEX.FIELD", "{{steps.0.success}}": "only the exit code of a shell step", "{{steps.0.data.*.x}}": "* has no form here",
		"{{loop.0.output}}": "outer loops have no form here", "{{env.HOME}}": "in shell lines only", "{{a{{b}}}}": "references in references have no form here", "{{1}}": "unknown reference",
	} {
		_, _, problems := continuum.Rewrite([]byte(in("prompt", from)), "f.json")
		if len(problems) == 0 || !strings.Contains(problems.Error(), why) {
			t.Errorf("%s: %v, want %q", from, problems, why)
		}
	}
	if _, _, problems := continuum.Rewrite([]byte(`{"steps":`), "f.json"); len(problems) == 0 || !strings.Contains(problems.Error(), "f.json:1:") {
		t.Errorf("a text that is not JSON: %v", problems)
	}
}

// A wrapper goes, and keys without a meaning; comments and the rest stay as written.
func TestRestStays(t *testing.T) {
	const src = `{
  // of the team
  "pipeline": {
    "name": "a", "steps": [{"type": "llm", "prompt": "p", "activeAdapters": ["x"]}, {"command": "c", "permissionMode": "full", "params": {"status": "kept"}}]
  },
  "status": "saved"
}`
	const want = `{
  // of the team
  
    "name": "a", "steps": [{"type": "llm", "prompt": "p"}, {"command": "c", "params": {"status": "kept"}}]
  
}`
	out, changes, problems := continuum.Rewrite([]byte(src), "f.json")
	if diff := cmp.Diff(want, string(out)); diff != "" || len(problems) > 0 || len(changes) != 4 {
		t.Errorf("%v %v (-want +got):\n%s", problems, changes, diff)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add(in("prompt", "{{steps.0.output}} {{input.x}}"))
	f.Add(`{"pipeline":{"steps":[{"if":"'{{a.b}}'","status":1,"executions":[]}]},"inputs":{"x":{}}}`)
	f.Add(`{"inputs":{},"definition":{"a":"{{input.y}}"}}`)
	f.Fuzz(func(t *testing.T, src string) {
		out, _, problems := continuum.Rewrite([]byte(src), "f")
		if len(problems) > 0 {
			return
		}
		if tree := strictjson.ParseWithComments(out, strictjson.Limits{}); tree.Root == nil {
			t.Errorf("%s\nbecame what is not JSON: %s\n%v", src, out, tree.Errors)
		}
	})
}
