package sentinels_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// lines returns the problems of a text, one a line.
func lines(problems sentinels.Problems) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// TestUnknownTypeReport: "problems inside a step of unknown type ... come in the same
// report".
func TestUnknownTypeReport(t *testing.T) {
	const text = `{"name": "n", "steps": [
  {"type": "condtion", "check": "($a", "then": [{"type": "shell", "comand": "ls"}]},
  {"type": "shel"},
  {"type": "teleport", "to": 1, "then": [{"type": "nope"}], "branches": [[{"type": "shell", "outputto": "x", "command": "ls"}]]},
  {"type": "shell", "command": "ls", "onEror": "skip"}
]}`
	r := sentinels.Inspect([]byte(text), options(t))
	want := []string{
		`2:12: steps[0].type: unknown step type "condtion"`,
		`2:33: steps[0].check: unbalanced parentheses`,
		`2:49: steps[0].then[0]: needs "command" or "argv"`,
		`2:67: steps[0].then[0].comand: unknown key "comand"`,
		`3:12: steps[1].type: unknown step type "shel"`,
		`4:12: steps[2].type: unknown step type "teleport"`,
		`4:51: steps[2].then[0].type: unknown step type "nope"`,
		`4:93: steps[2].branches[0][0].outputto: unknown key "outputto"`,
		`5:38: steps[3].onEror: unknown key "onEror"`,
	}
	if diff := cmp.Diff(want, lines(r.Problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for path, broken := range map[string]bool{"steps[0]": true, "steps[0].then[0]": true, "steps[1]": true, "steps[3]": true} {
		if r.BrokenStep(path) != broken {
			t.Errorf("BrokenStep(%s) = %v", path, !broken)
		}
	}
	// A problem of a nested step is not one of the step around it.
	r = sentinels.Inspect([]byte(`{"name": "n", "steps": [{"if": "$a", "then": [{"type": "shell", "command": 1}]}]}`), options(t))
	if r.BrokenStep("steps[0]") || !r.BrokenStep("steps[0].then[0]") {
		t.Errorf("broken: %v %v\n%v", r.BrokenStep("steps[0]"), r.BrokenStep("steps[0].then[0]"), r.Problems)
	}
}

// TestAbsentType: "What is known but absent here (a plugin not loaded ...) is a warning".
func TestAbsentType(t *testing.T) {
	opt := options(t)
	opt.UnknownType = func(typ sentinels.StepType) (string, string) {
		if typ == "deploy" {
			return `step type "deploy" waits`, "allow it"
		}
		return "", ""
	}
	text := []byte(`{"name": "n", "steps": [{"type": "deploy", "to": "$x", "then": [{"any": 1}]}]}`)
	r := sentinels.Inspect(text, opt)
	if len(r.Problems) != 1 || r.Problems[0].Kind != sentinels.KindAbsent || !r.Problems[0].IsWarning() || len(r.Problems.Errors()) != 0 {
		t.Errorf("%v", r.Problems)
	}
	if _, problems := sentinels.Decode(text, opt); len(problems) != 1 {
		t.Errorf("executable: %v", problems)
	}
	opt.AllowAbsent = true
	d, problems := sentinels.Decode(text, opt)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	// It is stored as it is written, also by an edit of its file.
	if out, err := sentinels.Rewrite(text, d, opt); err != nil || string(out) != string(text) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLenient checks that the text of a step that is not known any more is kept.
func TestLenient(t *testing.T) {
	const text = `{"id":"n","name":"n","steps":[{"type":"depoy","then":[{"any":1}],"to":"x"},{"type":"shell","command":"ls","future":true}],"loop":{"type":"once"}}`
	d := sentinels.Lenient([]byte(text), options(t))
	again, err := sentinels.Canonical(sentinels.Encode(d))
	if err != nil {
		t.Fatal(err)
	}
	want, err := sentinels.Canonical([]byte(text))
	if diff := cmp.Diff(string(want), string(again)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestInferAlias: `{"cmd": "ls"}` is a shell step.
func TestInferAlias(t *testing.T) {
	set, err := sentinels.NewTypeSet([]sentinels.TypeSpec{
		{Type: "command", Fields: []byte(`{"type":"object","properties":{"command":{"type":"string"}}}`), Infer: []string{"command"}},
		{Type: "shell", Fields: []byte(`{"type":"object","properties":{"command":{"type":"string"}}}`), Infer: []string{"cmd"}, Aliases: map[string]string{"cmd": "command"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, problems := sentinels.Decode([]byte(`{"name": "n", "steps": [{"cmd": "ls"}, {"command": "code/read"}]}`), sentinels.DecodeOptions{Types: set})
	if len(problems) > 0 || d.Steps[0].Type != "shell" || d.Steps[1].Type != "command" {
		t.Errorf("%v %v", d, problems)
	}
}

// TestAdded: "refused for errors that the edit adds, older ones are listed".
func TestAdded(t *testing.T) {
	p := func(path, message string) sentinels.Problem {
		return sentinels.Problem{Path: path, Kind: sentinels.KindUnknown, Message: message}
	}
	before := sentinels.Problems{p("steps[0].command", "a"), p("steps[1].command", "b")}
	after := sentinels.Problems{p("steps[4].then[0].command", "a"), p("steps[1].command", "a"), p("steps[1].tools", "b")}
	added, older := after.Added(before)
	if got := strings.Join(append(lines(added), lines(older)...), "|"); got != "steps[1].command: a|steps[1].tools: b|steps[4].then[0].command: a" {
		t.Errorf("%s", got)
	}
}

// TestWalk checks the paths of steps and of inline definitions.
func TestWalk(t *testing.T) {
	d := decode(t, `{"name": "n", "steps": [{"if": "$a", "then": [{"definition": {"steps": [{"type": "shell", "command": "ls"}]}}]},
		{"branches": [[{"definition": {"$ref": "other"}}]]}]}`)
	var got []string
	d.Walk(types(t), func(prefix string, d *sentinels.Definition) {
		d.EachStep(func(path string, s *sentinels.Step) { got = append(got, prefix+path+" "+string(s.Type)) })
	})
	want := []string{
		"steps[0] condition", "steps[0].then[0] sentinel", "steps[1] parallel", "steps[1].branches[0][0] sentinel",
		"steps[0].then[0].definition.steps[0] shell",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
