package sentinels_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// variables of the tests below.
var variables = map[string]string{
	"n": `5`, "s": `"text"`, "b": `true`, "z": `null`, "list": `[1, [2, {"x": "deep"}]]`,
	"review": `{"text": "looks \"good\"", "usage": {"tokens": 12}}`,
	"lines":  `[{"text": "one", "classification": "error"}, {"text": "two"}]`,
	"obj":    `{"a": {"b_1": [10, 20]}, "<": "&"}`,
	"evil":   `"'; rm -rf / #$(touch x)"`,
	"empty":  `[]`, "nul": `"a\u0000b"`, "quote": `"it's $HOME"`, "utf": `"ä😀"`,
}

func lookup(name string) (json.RawMessage, bool) {
	v, ok := variables[name]
	return json.RawMessage(v), ok
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		in, out string
		unknown []string
	}{
		{`"$n"`, `5`, nil},
		{`"n=$n"`, `"n=5"`, nil},
		{`"$z"`, `null`, nil},
		{`"[$z]"`, `"[]"`, nil},
		{`"$review"`, variables["review"], nil},
		{`"Said: $review."`, `"Said: looks \"good\"."`, nil},
		{`"$review.usage.tokens left"`, `"12 left"`, nil},
		{`"$lines"`, variables["lines"], nil},
		{`"Errors:\n$lines"`, `"Errors:\none\ntwo"`, nil},
		{`"$list[1][1].x"`, `"deep"`, nil},
		{`"x $list"`, `"x [1,[2,{\"x\":\"deep\"}]]"`, nil},
		{`"x $empty"`, `"x []"`, nil},
		{`"$obj.a.b_1[1]0"`, `"200"`, nil},
		{`"$list.length $s.length $utf.length"`, `"2 4 3"`, nil},
		{`"$$n costs $$5 $5 $ $"`, `"$n costs $5 $5 $ $"`, nil},
		{`"$$$n"`, `"$5"`, nil},
		{`"$$n"`, `"$n"`, nil},
		{`"$unset and $unset"`, `"$unset and $unset"`, []string{"$unset"}},
		{`"$n.x"`, `"$n.x"`, []string{"$n.x"}},
		{`"$list[7]"`, `"$list[7]"`, []string{"$list[7]"}},
		{`"Ask $n. Then [$n] go."`, `"Ask 5. Then [5] go."`, nil},
		{`{"$n": "$n", "a": ["$s", {"b": "$b"}]}`, `{"$n":5,"a":["text",{"b":true}]}`, nil},
		{`"\u0024n"`, `5`, nil},
		{`{"plain": [1, "x"]}`, `{"plain": [1, "x"]}`, nil},
		{`"$s$s"`, `"texttext"`, nil},
		{`"$n_"`, `"$n_"`, []string{"$n_"}},
	} {
		out, unknown, err := sentinels.Resolve(json.RawMessage(tt.in), lookup)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if string(out) != tt.out {
			t.Errorf("%s became %s, want %s", tt.in, out, tt.out)
		}
		if diff := cmp.Diff(tt.unknown, unknown); diff != "" {
			t.Errorf("%s: unknown (-want +got):\n%s", tt.in, diff)
		}
	}
	if _, _, err := sentinels.Resolve(json.RawMessage(`"$n`), lookup); err == nil {
		t.Error("broken JSON is resolved")
	}
}

// TestResolveAs resolves references to text if the schema requires a string.
func TestResolveAs(t *testing.T) {
	schema := json.RawMessage(`{"type": "object", "$defs": {"t": {"type": ["string", "null"]}},
		"properties": {"message": {"type": "string"}, "any": {}, "count": {"type": "integer"}, "ref": {"$ref": "#/$defs/t"},
			"either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
			"list": {"type": "array", "items": {"type": "string"}}, "env": {"type": "object", "additionalProperties": {"type": "string"}}}}`)
	in := `{"message":"$review","any":"$review","count":"$n","ref":"$n","either":"$review","list":["$n","$lines"],"env":{"A":"$obj.a"}}`
	want := `{"message":"looks \"good\"","any":` + variables["review"] + `,"count":5,"ref":"5","either":` + variables["review"] +
		`,"list":["5","one\ntwo"],"env":{"A":"{\"b_1\":[10,20]}"}}`
	out, _, err := sentinels.ResolveAs(json.RawMessage(in), schema, lookup)
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s, want\n%s", err, out, want)
	}
	spec, _ := types(t).Lookup("llm")
	if out, _, err := spec.ResolveField("prompt", json.RawMessage(`"$review"`), lookup); err != nil || string(out) != `"looks \"good\""` {
		t.Errorf("%s, %v", out, err)
	}
	if out, _, err := spec.ResolveField("temperature", json.RawMessage(`"$n"`), lookup); err != nil || string(out) != `5` {
		t.Errorf("%s, %v", out, err)
	}
}

// TestShapeRecursion reads a schema that is recursive in several ways.
func TestShapeRecursion(t *testing.T) {
	schema := json.RawMessage(`{"$ref": "#/$defs/node", "$defs": {"loop": {"$ref": "#/$defs/loop"}, "node": {"type": "object", "properties": {
		"text": {"type": "string"}, "odd": {"$ref": "#/$defs/loop"},
		"a": {"$ref": "#/$defs/node"}, "b": {"$ref": "#/$defs/node"}, "c": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}}`)
	in := json.RawMessage(`{"text":"$n","a":{"b":{"c":[{"text":"$n","x":"$n","odd":"$n"}]}}}`)
	out, _, err := sentinels.ResolveAs(in, schema, lookup)
	if want := `{"text":"5","a":{"b":{"c":[{"text":"5","x":5,"odd":5}]}}}`; err != nil || string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}

// TestResolveLimit resolves a text that contains a long value many times.
func TestResolveLimit(t *testing.T) {
	long, _ := json.Marshal(strings.Repeat("x", 1<<20))
	in, _ := json.Marshal(strings.Repeat("$a ", 40))
	_, _, err := sentinels.Resolve(in, func(string) (json.RawMessage, bool) { return long, true })
	if !errors.Is(err, sentinels.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	list := json.RawMessage("[" + strings.Repeat(`"$a",`, 40) + `"$a"]`)
	if _, _, err := sentinels.Resolve(list, func(string) (json.RawMessage, bool) { return long, true }); !errors.Is(err, sentinels.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestReferences(t *testing.T) {
	got := sentinels.References(json.RawMessage(`{"$key": ["$b.c[0] $a $$no", {"x": "\u0024c"}], "y": "$b"}`))
	if diff := cmp.Diff([]string{"b", "a", "c"}, got); diff != "" {
		t.Error(diff)
	}
	got = sentinels.ExpressionReferences(`$a.x === "$no" && /* $no */ !$b['$no'] || $c?.d.$no // $no`)
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPath(t *testing.T) {
	for path, want := range map[string]string{"": variables["obj"], "a.b_1[0]": "10", ".a.b_1": "[10, 20]", "a.x": "", "a[0]": "", "b_1": "", "[": "", ".": "", "a..b_1": "", "a.b_1[x]": "", "a.b_1[-1]": ""} {
		got, ok := sentinels.Path(json.RawMessage(variables["obj"]), path)
		if ok != (want != "") || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", path, got, ok, want)
		}
	}
}

func TestShellLine(t *testing.T) {
	for _, tt := range []struct {
		in, out  string
		env      map[string]string
		problems int
	}{
		{`echo $s`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo "$s" $n "$s"x`, `echo "${SENTINEL_1}" ${SENTINEL_2} "${SENTINEL_1}"x`, map[string]string{"SENTINEL_1": "text", "SENTINEL_2": "5"}, 0},
		{`echo $HOME $? $$ $1 $(pwd) ${s} $((1+n))`, `echo $HOME $? $$ $1 $(pwd) ${s} $((1+n))`, nil, 0},
		{`echo '$s'`, `echo '$s'`, nil, 1},
		{`echo '$HOME'`, `echo '$HOME'`, nil, 0},
		{`echo "it's $s"`, `echo "it's ${SENTINEL_1}"`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo \$s \'$s`, `echo \$s \'${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo "$(echo '$s' "$s")"`, `echo "$(echo '$s' "${SENTINEL_1}")"`, map[string]string{"SENTINEL_1": "text"}, 1},
		{"echo a # don't $s\necho $s", "echo a # don't $s\necho ${SENTINEL_1}", map[string]string{"SENTINEL_1": "text"}, 0},
		{"cat <<EOF\ndon't $s\nEOF\necho '$s'", "cat <<EOF\ndon't ${SENTINEL_1}\nEOF\necho '$s'", map[string]string{"SENTINEL_1": "text"}, 1},
		{"cat <<-'EOF'\n\t$s\n\tEOF\necho $s", "cat <<-'EOF'\n\t$s\n\tEOF\necho ${SENTINEL_1}", map[string]string{"SENTINEL_1": "text"}, 1},
		{`cat <<<$s`, `cat <<<${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 0},
		{`echo $review.usage.tokens`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "12"}, 0},
		{`echo $review`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": `looks "good"`}, 0},
		{`cat $s.txt`, `cat $s.txt`, nil, 1},
		{`echo $nul`, `echo $nul`, nil, 1},
		{`echo $evil`, `echo ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "'; rm -rf / #$(touch x)"}, 0},
		{"echo `echo '$s'` \"`echo $s`\"", "echo `echo '$s'` \"`echo ${SENTINEL_1}`\"", map[string]string{"SENTINEL_1": "text"}, 1},
		{`echo "${x:-'$s'}" ${x:-$n}`, `echo "${x:-'${SENTINEL_1}'}" ${x:-${SENTINEL_2}}`, map[string]string{"SENTINEL_1": "text", "SENTINEL_2": "5"}, 0},
		{`echo $'it\'s $s' $s`, `echo $'it\'s $s' ${SENTINEL_1}`, map[string]string{"SENTINEL_1": "text"}, 1},
		{`echo ${#x} a#'$s'`, `echo ${#x} a#'$s'`, nil, 1},
		{`echo '$s`, `echo '$s`, nil, 1},
		{`plain`, `plain`, nil, 0},
	} {
		out, env, problems := sentinels.ShellLine(tt.in, lookup)
		if out != tt.out {
			t.Errorf("%s\nbecame %s\nwant   %s", tt.in, out, tt.out)
		}
		if diff := cmp.Diff(tt.env, env, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: env (-want +got):\n%s", tt.in, diff)
		}
		if len(problems) != tt.problems {
			t.Errorf("%s: problems %q, want %d", tt.in, problems, tt.problems)
		}
	}
}

// TestShellLineIn checks that lines of one step get different names.
func TestShellLineIn(t *testing.T) {
	env := map[string]string{"SENTINEL_2": "mine"}
	first, _ := sentinels.ShellLineIn(env, `echo $s`, lookup)
	second, _ := sentinels.ShellLineIn(env, `echo $n $s`, lookup)
	if first != `echo ${SENTINEL_3}` || second != `echo ${SENTINEL_4} ${SENTINEL_5}` {
		t.Errorf("%s; %s", first, second)
	}
	want := map[string]string{"SENTINEL_2": "mine", "SENTINEL_3": "text", "SENTINEL_4": "5", "SENTINEL_5": "text"}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
}

// TestShellLineRuns prints hostile values with a real shell.
func TestShellLineRuns(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	for line, want := range map[string]string{
		`printf %s "$evil"`:                       "'; rm -rf / #$(touch x)",
		`printf %s "$quote" "a$n"`:                "it's $HOMEa5",
		"cat <<EOF\n$evil\nEOF":                   "'; rm -rf / #$(touch x)\n",
		`printf %s "$(printf %s "$evil")"`:        "'; rm -rf / #$(touch x)",
		`x=$n; printf %s "$x$((x+1))${x}"`:        "565",
		`printf %s "${nothing:-$review}"`:         `looks "good"`,
		`for i in 1 2; do printf %s "$i$s"; done`: "1text2text",
	} {
		rewritten, env, problems := sentinels.ShellLine(line, lookup)
		if len(problems) > 0 {
			t.Errorf("%s: %q", line, problems)
			continue
		}
		cmd := exec.Command(sh, "-c", rewritten)
		cmd.Env = []string{"HOME=/nowhere"}
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s, want\n%s", line, err, out, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	got, err := sentinels.Canonical(json.RawMessage(" { \"b\" : [ 1.0 , {} , [ ] , null ] , \"a\" : \"\\u00e4\\/\\u0007<\" } "))
	if want := `{"a":"ä/\u0007<","b":[1.0,{},[],null]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if _, err := sentinels.Canonical(json.RawMessage(`{`)); err == nil {
		t.Error("broken JSON has a canonical form")
	}
}

func BenchmarkResolve(b *testing.B) {
	for name, in := range map[string]string{
		"plain":     `{"operation":"commit","message":"Build passes","paths":["."]}`,
		"reference": `{"executionId":"$obj.a","message":"Fix these:\n$lines","n":"$n"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := sentinels.Resolve(json.RawMessage(in), lookup); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
