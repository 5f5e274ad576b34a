package sentinels_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

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
			for _, p := range sentinels.Check(d, types(t)) {
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
	got := sentinels.Check(decode(t, src), types(t)).Locate("f.json", []byte(src), types(t)).Error()
	want := strings.Join([]string{
		`f.json:6:70: steps[1].condition: $tests.output is a text, and every text that is not empty is true, also 'false'`,
		"\twrite $tests.output.trim() === 'true', or $tests.output.trim() !== '' to accept any text",
		`f.json:7:15: steps[2].check: $flag is a text, and every text that is not empty is true, also 'false'`,
		"\twrite $flag === 'true', or declare the input with type \"boolean\"",
		`f.json:7:43: steps[2].then[0].check: $tests is an object, the result of a shell line, and every object is true`,
		"\twrite $tests.success, or $tests.output.trim() === 'true'",
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
	if got := sentinels.Check(d, types(t)); len(got) > 0 {
		t.Errorf("warnings: %v", got)
	}
}
