package sentinels_test

import (
	"encoding/json"
	"fmt"
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
	got := sentinels.Check(t.Context(), d, types(t), "given").Locate("f.json", []byte(src), types(t)).Error()
	want := strings.Join([]string{
		`f.json:5:31: steps[0].prompt: unknown variable $plces`,
		"\tdid you mean \"$places\"?",
		`f.json:6:12: steps[1].check: unknown variable $placs`,
		"\tdid you mean \"$places\"?",
		`f.json:6:81: steps[1].then[0].command: $places is in single quotes, so echo gets the name and not the value`,
		"\tuse double quotes, if the value of the variable is meant",
		`f.json:8:44: steps[3].steps[0].argv: $thing is never set and stays as written`,
		"\tdeclare it under \"inputs\", or write \"$$\" for a dollar",
		`f.json:10:40: steps[5].definition.steps[0].argv: $inner is never set and stays as written`,
		"\tdeclare it under \"inputs\", or write \"$$\" for a dollar",
		`f.json:12:38: loop.check: $done is never set and is undefined`,
		"\tdeclare it under \"inputs\", or write \"$$\" for a dollar",
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestUnknownMax: loop.max is a whole number, so a name that nothing sets cannot stay as written.
func TestUnknownMax(t *testing.T) {
	d, problems := sentinels.Decode([]byte(`{"name":"n","loop":{"type":"count","max":"$times"},"steps":[]}`), sentinels.DecodeOptions{Types: types(t)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := sentinels.Check(t.Context(), d, types(t)); len(got) != 1 || got[0].Kind != sentinels.KindUnknown || got[0].Path != "loop.max" {
		t.Errorf("%v", got)
	}
}

// TestReferences checks the rules of clause F8.1, one text each.
func TestReferences(t *testing.T) {
	for _, tt := range []struct{ steps, want string }{
		// "validate follows assignments: a warning if it is empty in the first iteration"
		{`{"type":"llm","prompt":"$later"},{"type":"llm","prompt":"x","outputTo":"later"}`, "warning: steps[0].prompt: $later has no value here in the first iteration: a later step sets it"},
		{`{"type":"shell","command":"echo $later"},{"type":"llm","prompt":"x","outputTo":"later"}`, "warning: steps[0].command: $later has no value here in the first iteration: a later step sets it"},
		{`{"check":"$later","then":[]},{"type":"llm","prompt":"x","outputTo":"later"}`, ""},
		{`{"check":"true","then":[{"type":"llm","prompt":"x","outputTo":"a"}],"else":[{"type":"llm","prompt":"$a"}]}`, "warning: steps[0].else[0].prompt: $a has no value here in the first iteration: a later step sets it"},
		{`{"check":"true","then":[{"type":"llm","prompt":"x","outputTo":"a"}]},{"type":"llm","prompt":"$a"}`, ""},
		{`{"each":"$event","steps":[{"type":"llm","prompt":"$item"}]}`, ""},
		{`{"type":"shell","command":"a","outputTo":"x"},{"type":"shell","command":"echo $x.json?.a *?.go $y?.z"}`, "warning: steps[1].command: a shell line has no \"?.\": the line has the value of $x.json and behind it the text \"?.a\""},
		// parse without outputTo: the last step of a list gives the output of the list, and $last is that of any step
		{`{"type":"shell","command":"a","parse":"json"}`, `warning: steps[0].parse: parse has no effect without "outputTo"`},
		{`{"each":[1],"maxConcurrent":2,"outputTo":"all","steps":[{"type":"shell","command":"a","parse":"json"}]}`, ""},
		{`{"each":[1],"steps":[{"type":"shell","command":"a","parse":"json"},{"type":"shell","command":"b"}]}`, `warning: steps[0].steps[0].parse: parse has no effect without "outputTo"`},
		{`{"type":"shell","command":"a","parse":"json"},{"type":"shell","command":"echo $last"}`, ""},
		// "an error if nothing can ever set it and it has a path or is one edit from a known name"
		{`{"type":"llm","prompt":"$inputs.nope"}`, "unknown: steps[0].prompt: $inputs has no \"nope\""},
		{`{"id":"build-it","type":"shell","command":"echo $run.nope"},{"type":"llm","prompt":"$steps[\"build-it\"].output $steps.bild"}`, "unknown: steps[0].command: $run has no \"nope\"\nunknown: steps[1].prompt: $steps has no \"bild\""},
		{`{"type":"llm","prompt":"$inputs?.nope $run.id"}`, ""},
		{`{"type":"llm","prompt":"$foo.bar"}`, "unknown: steps[0].prompt: unknown variable $foo"},
		{`{"type":"llm","prompt":"$foo?.bar"}`, "warning: steps[0].prompt: $foo is never set and stays as written"},
		{`{"check":"$foo.bar > 1","then":[]}`, "unknown: steps[0].check: unknown variable $foo"},
		{`{"type":"shell","command":"x","outputTo":"build"},{"type":"shell","command":"echo $biuld $buil"}`, "unknown: steps[1].command: unknown variable $biuld\nunknown: steps[1].command: unknown variable $buil"},
		{`{"type":"shell","command":"echo $file.txt"}`, "unknown: steps[0].command: unknown variable $file"},
		{`{"type":"shell","command":". ./env; echo $file.txt"}`, ""},
		{`{"type":"shell","command":"for file in *; do echo $file.txt; done; echo $HOME.x"}`, ""},
		// "any other name that nothing sets stays as written, with a warning, so that prompts may speak of $HOME"
		{`{"type":"llm","prompt":"Look at $HOME"}`, "warning: steps[0].prompt: $HOME is never set and stays as written"},
		// "An id that is a valid variable name is a value if a text of the definition refers to it"
		{`{"id":"build","type":"shell","command":"make"},{"type":"llm","prompt":"$build.output $steps[\"build\"].output"}`, ""},
		{`{"id":"build-it","type":"shell","command":"make"},{"type":"llm","prompt":"$steps[\"build-it\"].output"}`, ""},
		// "${x}, {{x}}, %x% that mean nothing to us, and a whole line that is one reference, are warned of"
		{`{"type":"llm","prompt":"x","outputTo":"a"},{"type":"llm","prompt":"${a} {{a.text}} %a% ${b} 5%b%"}`,
			"warning: steps[1].prompt: {{a.text}} stays as written\nwarning: steps[1].prompt: %a% stays as written"},
		{`{"type":"llm","prompt":"{{steps.0.output}} {{secret.KEY}}"}`, "warning: steps[0].prompt: {{steps.0.output}} stays as written"},
		{`{"type":"llm","prompt":"x","outputTo":"a"},{"type":"shell","command":"echo ${a} ${HOME}"}`, "warning: steps[1].command: ${a} is a variable of the shell, which does not have the value"},
		{`{"type":"llm","prompt":"x","outputTo":"a"},{"type":"shell","command":"$a"}`, "warning: steps[1].command: the line is one reference: the shell splits the value into words and executes the first of them"},
		{`{"type":"shell","command":"echo $NOW ${NOW} $WORKSPACE"},{"type":"llm","prompt":"$NOW $ELAPSED_MS $PROJECT_ROOT $PERSONA_ID"}`, ""},
	} {
		src := `{"name":"a","steps":[` + tt.steps + `]}`
		var got []string
		for _, p := range sentinels.Check(t.Context(), decode(t, src), types(t)) {
			got = append(got, string(p.Kind)+": "+p.Path+": "+p.Message)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.steps, diff)
		}
	}
	own := `{"name":"a","steps":[{"type":"own"},{"type":"llm","prompt":"$foo.bar"}]}`
	set, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{Type: "own", Plugin: "mine"}, {Type: "llm", Plugin: "builtin", Fields: []byte(`{"properties":{"prompt":{}}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	d, problems := sentinels.Decode([]byte(own), sentinels.DecodeOptions{Types: set})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if p := sentinels.Check(t.Context(), d, set); len(p) != 1 || p[0].Kind != sentinels.KindWarning {
		t.Errorf("a variable that a step of another plugin may set: %v", p)
	}
}

// Finding 3 of writing sentinels with the binary alone: ${r.x} and {{r.x}} passed validate
// and stayed as written. Names that only other programs know are theirs.
func TestFinding3ForeignForms(t *testing.T) {
	for line, want := range map[string]string{
		`echo {{r.text}}`:      "{{r.text}} is not a reference, and stays as written | write $r.text",
		`echo {{ $r.text }}`:   "{{ $r.text }} is not a reference, and stays as written | write $r.text",
		`echo {{reslut.text}}`: "{{reslut.text}} is not a reference, and stays as written | write $reslut.text",
		`echo {{event.data}}`:  "{{event.data}} is not a reference, and stays as written | write $event.data",
		`echo %r%`:             "%r% is not a reference, and stays as written | write $r",
		`echo ${r.text}`:       "${r.text} is a variable of the shell, which does not have the value | write $r.text",
		`echo ${r[0]}`:         "${r[0]} is a variable of the shell, which does not have the value | write $r[0]",
		`echo ${other.text}`:   "${other.text} is a bad substitution in a shell | a reference is $name.field, where name is the \"outputTo\" of a step, an input or one of \"variables\"",
		`docker ps --format '{{.Names}} {{json .}} {{names}}'`:  "",
		`date +%H%M%S; echo %PATH% ${HOME} ${list[0]} ${x%.go}`: "",
		`r=1; echo ${r} ${r[0]}`:                                "",
	} {
		raw, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		src := `{"name":"a","steps":[{"type":"llm","prompt":"x","outputTo":"r"},{"type":"llm","prompt":"x","outputTo":"result"},{"type":"shell","command":` + string(raw) + `}]}`
		var got []string
		for _, p := range sentinels.Check(t.Context(), decode(t, src), types(t)) {
			if p.Kind != sentinels.KindWarning || p.Path != "steps[2].command" {
				t.Errorf("%s: %+v", line, p)
			}
			got = append(got, p.Message+" | "+p.Hint)
		}
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	src := `{"name":"a","steps":[{"type":"llm","prompt":"x","outputTo":"r"},{"type":"llm","prompt":"${r.output} ${other.text}"}]}`
	if p := sentinels.Check(t.Context(), decode(t, src), types(t)); len(p) != 0 { // ${r.output} is a reference there
		t.Errorf("in a prompt: %v", p)
	}
}

// TestMarks checks that the format knows every mark of the ABI.
func TestMarks(t *testing.T) {
	for _, mark := range []string{abi.MarkExpression, abi.MarkSteps, abi.MarkBranches, abi.MarkShell, abi.MarkInterpreter, abi.MarkRaw,
		abi.MarkDefinition, abi.MarkTools, abi.MarkParams, abi.MarkVariable, abi.MarkValues} {
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

// TestTextAsCondition checks that a value that is known to be text is reported if it is
// tested without a comparison, and that other values are not.
func TestTextAsCondition(t *testing.T) {
	const src = `{"name": "a", "inputs": {"flag": {"type": "string", "enum": ["true", "false"]}, "branch": "string", "ready": "boolean"}, "steps": [
  {"type": "shell", "command": "./check", "outputTo": "tests"},
  {"command": "code/shell/execute", "params": {"command": "./check"}, "outputTo": "call"},
  {"command": "data/list", "params": {}, "outputTo": "list"},
  {"type": "llm", "prompt": "ready?", "outputTo": "reply"},
  {"check": %s, "then": []}]}`
	for condition, want := range map[string]string{
		"$reply.text":                    "$reply.text",
		"$reply?.text":                   "$reply?.text",
		"$reply.text.trim()":             "$reply.text.trim()",
		"!$reply.text":                   "$reply.text",
		"!!$reply.text":                  "$reply.text",
		" ( $reply.text ) ":              "$reply.text",
		"$list.count > 1 && $reply.text": "$reply.text",
		"$list.ok || !($reply.text && $tests.output)": "$reply.text $tests.output",
		"$list.ok ? $reply.text : !$tests.stderr":     "$reply.text $tests.stderr",
		"$reply.text ? true : false":                  "$reply.text",
		"$tests.output":                               "$tests.output",
		"$tests.output.trim().toLowerCase()":          "$tests.output.trim().toLowerCase()",
		"$call.output && $call.success":               "$call.output",
		"$tests.stdout":                               "$tests.stdout",
		"$tests":                                      "$tests",
		"!$call":                                      "$call",
		"$flag":                                       "$flag",

		"$reply.text === 'true'":               "",
		"'true' === $reply.text":               "",
		"!$reply.text.includes('no')":          "",
		"($reply.text || 'false') === 'true'":  "",
		"$reply.text !== '' && $tests.success": "",
		"$list.items[$reply.text]":             "",
		"[$reply.text].includes('yes')":        "",
		"$reply.text + $tests.output":          "",
		"typeof $reply.text":                   "",
		"$reply.text ?? false":                 "",
		"'$reply.text && $tests.output'":       "",
		"$reply.done":                          "",
		"$reply":                               "",
		"$list.output":                         "",
		"$list":                                "",
		"$tests.output.length":                 "",
		"$branch":                              "",
		"$ready":                               "",
		"/a|b/.test($reply.text)":              "", // regular expressions are not parsed
		"((((":                                 "",
		"'":                                    "",
		"$reply.text ?":                        "$reply.text",
	} {
		t.Run(condition, func(t *testing.T) {
			quoted, err := json.Marshal(condition)
			if err != nil {
				t.Fatal(err)
			}
			opt := options(t)
			opt.CheckExpression = nil
			d, problems := sentinels.Decode(fmt.Appendf(nil, src, quoted), opt)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var got []string
			for _, p := range sentinels.Check(t.Context(), d, types(t)) {
				if p.Path != "steps[4].check" || p.Hint == "" || p.Kind != sentinels.KindWarning {
					t.Errorf("%+v", p)
				}
				got = append(got, strings.Fields(p.Message)[0])
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTextAsConditionWording compares the texts of the warnings, for all fields with a
// condition.
func TestTextAsConditionWording(t *testing.T) {
	src := `{
  "name": "a",
  "inputs": {"flag": {"type": "string", "default": "false"}},
  "steps": [
    {"type": "shell", "command": "./check", "outputTo": "tests"},
    {"type": "llm", "prompt": "x", "outputTo": "reply", "condition": "$tests.output"},
    {"check": "$flag", "then": [{"check": "$tests", "then": []}]}
  ],
  "loop": {"type": "until", "check": "$reply.text"},
  "timeoutMs": 5
}`
	got := sentinels.Check(t.Context(), decode(t, src), types(t)).Locate("f.json", []byte(src), types(t)).Error()
	want := strings.Join([]string{
		`f.json:6:70: steps[1].condition: $tests.output is a text, and every text that is not empty is true, also 'false'`,
		"\twrite $tests.output.trim() === 'true', or $tests.output.trim() !== '' to accept any text",
		`f.json:7:15: steps[2].check: $flag is a text, and every text that is not empty is true, also 'false'`,
		"\twrite $flag === 'true', or declare the input with type \"boolean\"",
		`f.json:7:43: steps[2].then[0].check: $tests is an object, the result of a shell line, and every object is true`,
		"\twrite $tests.success, or $tests.text === 'true'",
		`f.json:9:38: loop.check: $reply.text is a text, and every text that is not empty is true, also 'false'`,
		"\twrite $reply.text === 'true', or $reply.text !== '' to accept any text",
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// A variable that steps of different types set can have any type.
func TestTextAsConditionOfSeveralSteps(t *testing.T) {
	d := decode(t, `{"name": "a", "steps": [
  {"type": "shell", "command": "./check", "outputTo": "x"}, {"command": "data/list", "params": {}, "outputTo": "x"},
  {"check": "$x", "then": []}, {"check": "$x.output", "then": []}]}`)
	if got := sentinels.Check(t.Context(), d, types(t)); len(got) > 0 {
		t.Errorf("warnings: %v", got)
	}
}

// A reference in text that another interpreter takes as code is a warning, with the way that
// keeps its value data. A stored line, which is one reference, is meant to be executed.
func TestCheckCode(t *testing.T) {
	for step, want := range map[string]string{
		`{"type":"shell","command":"sh -c \"echo $text\""}`:                  "sh executes",
		`{"type":"shell","command":"cd a && bash -lc \"x=$text; y\""}`:       "bash executes",
		`{"type":"shell","command":"python3 -c \"print('$text')\""}`:         "python3 executes",
		`{"type":"shell","command":"node -e \"f('$event.data.p')\""}`:        "node executes",
		`{"type":"shell","command":"ssh host \"rm $text\""}`:                 "ssh executes",
		`{"type":"shell","command":"eval \"echo $text\""}`:                   "eval executes",
		`{"type":"shell","command":"psql -c \"select '$text'\""}`:            "psql executes",
		`{"type":"shell","command":"sqlite3 db \"select '$text'\""}`:         "sqlite3 executes",
		`{"type":"shell","command":"jq \".[\\\"$text\\\"]\" f"}`:             "jq executes",
		`{"argv":["sh","-c","echo $text"]}`:                                  "sh executes",
		`{"argv":["/usr/bin/python3","-c","print('$event.data.p')"]}`:        "python3 executes",
		`{"type":"shell","command":"sh -c 'echo \"$1\"' sh \"$text\""}`:      "",
		`{"type":"shell","command":"eval \"$text\""}`:                        "",
		`{"type":"shell","command":"sh -c \"$text\""}`:                       "",
		`{"type":"shell","command":"ssh \"$text\" uptime"}`:                  "",
		`{"type":"shell","command":"ssh host cat <<<\"$text\""}`:             "",
		`{"type":"shell","command":"psql \"$text\" -c 'select 1'"}`:          "",
		`{"type":"shell","command":"python3 script.py \"$text\""}`:           "",
		`{"type":"shell","command":"awk \"{print $1}\" \"$text\""}`:          "",
		`{"type":"shell","command":"git commit -m \"$text\""}`:               "",
		`{"argv":["python3","-c","import sys; print(sys.argv[1])","$text"]}`: "",
		`{"argv":["git","-c","user.name=$text","commit"]}`:                   "",
	} {
		src := `{"name":"x","inputs":{"text":{"default":"a"}},"steps":[` + step + `]}`
		got := ""
		for _, p := range sentinels.Check(t.Context(), decode(t, src), types(t)) {
			if strings.Contains(p.Message, "pasted into code") {
				got = p.Message
				if p.Hint == "" {
					t.Errorf("%s: no hint", step)
				}
			}
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
}

// TestKeptVariables: what items that run side by side, onFailure and finally set is gone behind them.
func TestKeptVariables(t *testing.T) {
	d := decode(t, `{"name":"n","steps":[
		{"type":"loop","each":[1],"maxConcurrent":2,"outputTo":"all","steps":[{"argv":["a"],"outputTo":"v"},{"argv":["$v","$item"]}],"finally":[{"argv":["$result.status"],"outputTo":"w"}]},
		{"argv":["$v","$all.results","$w"]},
		{"type":"loop","each":[1],"steps":[{"argv":["a"],"outputTo":"x"}]},{"argv":["$x"]}],
		"finally":[{"argv":["$result.error.message"]}]}`)
	var got []string
	for _, p := range sentinels.Check(t.Context(), d, types(t)) {
		got = append(got, p.Path+": "+p.Message+"; "+p.Hint)
	}
	want := []string{
		`steps[1].argv: $v has no value here: the steps that set it keep it to themselves; give the loop "outputTo": "all" and use $all.results, the outputs of the items`,
		`steps[1].argv: $w has no value here: the steps that set it keep it to themselves; what onFailure and finally set stays in them`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
