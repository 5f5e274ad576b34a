package cond_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var world = values{
	"buildOutput": `{"exitCode":0,"stdout":"12 tests passed","lines":["a","b"]}`,
	"findings":    `{"complete":true,"text":"done","items":[]}`,
	"event":       `{"path":"src/main.go","branch":"main"}`,
	"a":           `[{"b":"x"},{"b":"y","c":null}]`,
	"s":           `"Grüße 😀 \ud83d"`,
	"odd":         `{"toString":1,"__proto__":{"q":1},"a b":2,"constructor":null}`,
	"zero":        `0`, "one": `1`, "neg": `-0`, "big": `9007199254740993`, "huge": `1e400`, "frac": `0.1`,
	"yes": `true`, "no": `false`, "nil": `null`, "empty": `""`, "text": `"  Ab  "`, "num": `"3"`,
	"list": `["a","b","c"]`, "none": `[]`, "obj": `{}`,
}

const (
	quick = "fast"
	slow  = "child"
)

// rows: source, lane, then the value and its truth. A value of "" is undefined.
var rows = []struct {
	src, lane, json string
	truthy          bool
}{
	// F1: comparisons are evaluated, no text is true for being text.
	{`1 == 0`, quick, `false`, false},
	{`$buildOutput.exitCode === 0`, quick, `true`, true},
	{`$buildOutput.exitCode !== 0`, quick, `false`, false},
	{`$findings.complete`, quick, `true`, true},
	{`'1 == 0'`, quick, `"1 == 0"`, true},
	// Operands.
	{`true`, quick, `true`, true}, {`false`, quick, `false`, false},
	{`null`, quick, `null`, false}, {`undefined`, quick, ``, false},
	{`0`, quick, `0`, false}, {`1.5`, quick, `1.5`, true}, {`2e3`, quick, `2000`, true}, {`1E-2`, quick, `0.01`, true},
	{`''`, quick, `""`, false}, {`"0"`, quick, `"0"`, true}, {`'a\nb'`, quick, `"a\nb"`, true},
	{`'\u0041\x42\\'`, quick, `"AB\\"`, true}, {`"it's"`, quick, `"it's"`, true}, {`'😀'.length`, quick, `2`, true},
	// Truth of values.
	{`$zero`, quick, `0`, false}, {`$neg`, quick, `0`, false}, {`$one`, quick, `1`, true}, {`$nil`, quick, `null`, false},
	{`$empty`, quick, `""`, false}, {`$num`, quick, `"3"`, true}, {`$none`, quick, `[]`, true}, {`$obj`, quick, `{}`, true},
	{`0/0`, quick, `null`, false}, {`1/0`, quick, `null`, true}, {`-1/0`, quick, `null`, true}, {`-0`, quick, `0`, false},
	{`1/$neg < 0`, quick, `true`, true}, {`$huge`, quick, `null`, true}, {`$huge > 1`, quick, `true`, true},
	{`$big`, quick, `9007199254740992`, true}, {`$frac + 0.2 === 0.3`, quick, `false`, false},
	// Paths.
	{`$a[0].b`, quick, `"x"`, true}, {`$a[1]['b']`, quick, `"y"`, true}, {`$a[$zero].b`, quick, `"x"`, true},
	{`$a[9]`, quick, ``, false}, {`$a.length`, quick, `2`, true}, {`$buildOutput.lines[1]`, quick, `"b"`, true},
	{`$a[1].c`, quick, `null`, false}, {`$a[1].c?.d`, quick, ``, false}, {`$a[9]?.b`, quick, ``, false},
	{`$a?.[1]?.b`, quick, `"y"`, true}, {`$odd['a b']`, quick, `2`, true}, {`$odd.toString`, quick, `1`, true},
	{`$odd.__proto__.q`, quick, `1`, true}, {`$odd.constructor`, quick, `null`, false}, {`$findings.class`, quick, ``, false},
	{"$a\n  [0]\n  .b", quick, `"x"`, true}, {`('abc')[1]`, quick, `"b"`, true},
	// Names without a value, and paths through them.
	{`$unset`, quick, ``, false}, {`$unset.a.b[0].c`, quick, ``, false}, {`$unset[0][$unset.x]`, quick, ``, false},
	{`$unset?.a.b`, quick, ``, false}, {`($unset.a).b`, quick, ``, false}, {`($unset?.a).b`, quick, ``, false},
	{`$unset === undefined`, quick, `true`, true}, {`$unset.a === undefined`, quick, `true`, true},
	{`$unset == null`, quick, `true`, true}, {`typeof $unset`, quick, `"undefined"`, true}, {`typeof $unset.a.b`, quick, `"undefined"`, true},
	{`$unset.done || $findings.complete`, quick, `true`, true}, {`!$unset.done`, quick, `true`, true},
	{`$unset ?? 'x'`, quick, `"x"`, true}, {`$unset.n > 3`, quick, `false`, false}, {`$unset && $unset.includes('x')`, quick, ``, false},
	{`$unset?.includes('x')`, quick, ``, false}, {`$unset.a?.includes('x')`, quick, ``, false}, {`$unset?.a.includes('x')`, quick, ``, false},
	{`$a[$unset]`, quick, ``, false}, {`$unset.a + 1`, quick, `null`, false},
	// Operators.
	{`1 + 2 * 3`, quick, `7`, true}, {`(1 + 2) * 3`, quick, `9`, true}, {`7 % 4 - 1`, quick, `2`, true}, {`-7 % 4`, quick, `-3`, true},
	{`'1' + 2`, quick, `"12"`, true}, {`'3' * '4'`, quick, `12`, true}, {`+$num`, quick, `3`, true}, {`- -1`, quick, `1`, true},
	{`!0`, quick, `true`, true}, {`!!$list`, quick, `true`, true}, {`typeof null`, quick, `"object"`, true}, {`typeof $list`, quick, `"object"`, true},
	{`typeof -$num`, quick, `"number"`, true}, {`'b' > 'a'`, quick, `true`, true}, {`'10' < '9'`, quick, `true`, true}, {`'10' < 9`, quick, `false`, false},
	{`null >= 0`, quick, `true`, true}, {`null == 0`, quick, `false`, false}, {`'3' == 3`, quick, `true`, true}, {`'3' === 3`, quick, `false`, false},
	{`0/0 == 0/0`, quick, `false`, false}, {`$list == 'a,b,c'`, quick, `true`, true}, {`$obj == '[object Object]'`, quick, `true`, true},
	{`1 || $unset.x()`, slow, `1`, true}, {`0 && 1`, quick, `0`, false}, {`null ?? 0`, quick, `0`, false}, {`(0 || 1) && 2`, quick, `2`, true},
	{`1 ? 'a' : 'b'`, quick, `"a"`, true}, {`0 ? 1 : 0 ? 2 : 3`, quick, `3`, true}, {`true ? false ? 1 : 2 : 3`, quick, `2`, true},
	{`1 < 2 === true`, quick, `true`, true}, {`$list + ''`, quick, `"a,b,c"`, true},
	// Methods of the fast lane.
	{`$buildOutput.stdout.includes('passed')`, quick, `true`, true}, {`$list.includes('z')`, quick, `false`, false},
	{`$event.path.endsWith('.go')`, quick, `true`, true}, {`$event.path.startsWith('src/', 0)`, quick, `true`, true},
	{`$list.indexOf('c')`, quick, `2`, true}, {`$text.trim().toLowerCase()`, quick, `"ab"`, true}, {`'ß'.toUpperCase()`, quick, `"SS"`, true},
	{`$list.slice(-2)`, quick, `["b","c"]`, true}, {`$list.at(-1)`, quick, `"c"`, true}, {`'abc'.slice(1, 2)`, quick, `"b"`, true},
	{`($num + 'x').at(0)`, quick, `"3"`, true}, {`'a'.includes('')`, quick, `true`, true}, {`$list.includes()`, quick, `false`, false},
	{`$s.length`, quick, `10`, true}, {`$s`, quick, `"Grüße 😀 \ud83d"`, true}, {`$s.indexOf('😀')`, quick, `6`, true},
	{`$list`, quick, `["a","b","c"]`, true}, {`$list.slice`, quick, ``, true},
	// What only the child lane takes.
	{`$list.some(m => m === 'b')`, slow, `true`, true}, {`$list.filter(m => m > 'a').length`, slow, `2`, true},
	{`$event.branch.replace('ai', 'e')`, slow, `"men"`, true}, {`/^\d+ tests/.test($buildOutput.stdout)`, slow, `true`, true},
	{`['main', 'dev'].includes($event.branch)`, slow, `true`, true}, {"`${$event.branch}!`", slow, `"main!"`, true},
	{`$list.map(function (m) { let n = m; n += '!'; return n })`, slow, `["a!","b!","c!"]`, true},
	{`({ x: $one, ...$findings }).x`, slow, `1`, true}, {`{ x: 1 }`, slow, `{"x":1}`, true}, {`(({b}) => b)($a[0])`, slow, `"x"`, true},
	{`(([p, ...q] = [1, 2, 3]) => q)()`, slow, `[2,3]`, true}, {`Math.max(...[1, 5, 3])`, slow, `5`, true},
	{`JSON.parse('{"k":[1]}').k[0]`, slow, `1`, true}, {`Object.keys($findings)`, slow, `["complete","text","items"]`, true},
	{`10n > 5n`, slow, `true`, true}, {`2 ** 10`, slow, `1024`, true}, {`1 << 4`, slow, `16`, true}, {`0x10`, slow, `16`, true}, {`.5`, slow, `0.5`, true},
	{`NaN`, slow, `null`, false}, {`x => x`, slow, ``, true}, {`$yes?.5:1`, slow, `0.5`, true}, {`(1, 2)`, slow, `2`, true},
	{`1 // one`, slow, `1`, true}, {`1 /* , 2 */`, slow, `1`, true}, {`'b' in { b: 1 }`, slow, `true`, true}, {`[] instanceof Array`, slow, `true`, true},
	{`$unset?.foo()`, slow, ``, false}, {`$unset.foo?.()`, slow, ``, false}, {`[$unset.a.b].length`, slow, `1`, true}, {"`${$unset.a}`", slow, `"undefined"`, true},
	{`(x => x.a)({ a: $unset.b.c })`, slow, ``, false}, {`[$one].map(x => $unset.y)`, slow, `[null]`, true}, {`({ $one })`, slow, `{"$one":1}`, true},
	{`this`, slow, ``, false}, {`(() => { try { null.x } catch (e) { return 'caught' } })()`, slow, `"caught"`, true},
	{`Symbol('x')`, slow, ``, true}, {`({ toJSON() { return 7 } })`, slow, `7`, true}, {`[1, 2, 3].reduce((a, b) => a + b)`, slow, `6`, true},
}

func TestSemantics(t *testing.T) {
	e := open(t, cond.Options{})
	for _, r := range rows {
		got, err := eval(t, e, r.src, world)
		if err != nil {
			t.Errorf("%s: %v (%s)", r.src, err, abi.As(err).Hint)
			continue
		}
		if string(got.JSON) != r.json || got.Truthy != r.truthy {
			t.Errorf("%s: got %s, %v; want %s, %v", r.src, got.JSON, got.Truthy, r.json, r.truthy)
		}
		if r.json == "" && got.JSON != nil {
			t.Errorf("%s: undefined must be nil", r.src)
		}
		if fast := cond.Fast(r.src); fast != (r.lane == quick) {
			t.Errorf("%s: fast lane %v", r.src, fast)
		}
		if err := e.Check(r.src); err != nil {
			t.Errorf("check %s: %v", r.src, err)
		}
		// The lanes agree on all of it.
		other, err := cond.SlowLane(r.src, world.vars())
		if diff := cmp.Diff(got, other); diff != "" || err != nil {
			t.Errorf("%s: the child lane differs: %v\n%s", r.src, err, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	e := open(t, cond.Options{})
	for _, r := range []struct {
		src  string
		code abi.Code
		want string // in the message
		hint string // in the hint
	}{
		{``, abi.BadFields, "1:1: empty", ""},
		{"  \n ", abi.BadFields, "empty", ""},
		{`// nothing`, abi.BadFields, "empty", ""},
		{`$a ===`, abi.BadFields, "1:7: unexpected end", ""},
		{`$a && ($one`, abi.BadFields, `1:12: unexpected end where ")"`, ""},
		{`$a)`, abi.BadFields, `1:3: unexpected ")"`, ""},
		{"$a\n  === === 1", abi.BadFields, `2:7: unexpected "==="`, ""},
		{`$a $b`, abi.BadFields, "1:4", ""},
		{`$a and $b`, abi.BadFields, "1:4", "&&"},
		{`$a.`, abi.BadFields, "1:4: unexpected end", ""},
		{`$a = 1`, abi.BadFields, "1:4: a condition cannot assign", "==="},
		{`$a.b = 1`, abi.BadFields, "cannot assign", "==="},
		{`$a += 1`, abi.BadFields, "cannot assign", ""},
		{`$a++`, abi.BadFields, "cannot assign", ""},
		{`--$a`, abi.BadFields, "cannot assign", ""},
		{`delete $a.b`, abi.BadFields, "cannot delete", ""},
		{`[1].map(() => { $one = 2 })`, abi.BadFields, "cannot assign", ""},
		{`[1].map(() => { $a[0].b = 2 })`, abi.BadFields, "cannot assign", ""},
		{`[1].map(($one) => 1)`, abi.BadFields, "cannot declare", "variables"},
		{`(() => { let { a: $one } = {}; })()`, abi.BadFields, "cannot declare", ""},
		{`1; 2`, abi.BadFields, "1:2", ""},
		{`[]; 2`, abi.BadFields, "", ""},
		{`1, 2`, abi.BadFields, "one expression", ""},
		{`[1], [2]`, abi.BadFields, "one expression", ""},
		{`[1],`, abi.BadFields, "", ""},
		{`1], [2`, abi.BadFields, "", ""},
		{`[1]][0`, abi.BadFields, "", ""},
		{`...[1]`, abi.BadFields, "", ""},
		{`[1]) || ([2]`, abi.BadFields, "", ""},
		{`[1] })(), (function() { return [2]`, abi.BadFields, "", ""},
		{`if (true) 1`, abi.BadFields, "", ""},
		{`return 1`, abi.BadFields, "", ""},
		{`var x = 1`, abi.BadFields, "", ""},
		{`await 1`, abi.BadFields, "", ""},
		{`[1] /* `, abi.BadFields, "unexpected end", ""},
		{`'abc`, abi.BadFields, "", ""},
		{`iteration > 3`, abi.BadFields, `1:1: unknown name "iteration"`, "did you mean $iteration"},
		{`$list.some(m => n)`, abi.BadFields, `1:17: unknown name "n"`, "did you mean $n"},
		{`$one && foo.bar([])`, abi.BadFields, `1:9: unknown name "foo"`, "$foo"},
		{`typeof foo === [].x`, abi.BadFields, "unknown name", "$foo"},
		{`$`, abi.BadFields, "no variable is called", ""},
		{`$$x`, abi.BadFields, "no variable is called", ""},
		{`$1`, abi.BadFields, "no variable is called", ""},
		{`\u0024one`, abi.BadFields, "escape", ""},
		{`new Date() > 0`, abi.BadFields, `unknown name "Date"`, "no clock"},
		{`Math.random() < 0.5`, abi.BadFields, "Math.random", ""},
		{`eval('1')`, abi.BadFields, "unknown name", "code out of data"},
		{`new Function('return 1')()`, abi.BadFields, "unknown name", ""},
		{`globalThis.x`, abi.BadFields, "unknown name", ""},
		{`(async () => 1)()`, abi.BadFields, "asynchronous", "promises"},
		{`Promise.resolve(1)`, abi.BadFields, "unknown name", "promises"},
		{`1 ?? 2 || 3`, abi.BadFields, "", ""},
		{`010`, abi.BadFields, "", ""},
		{"'\xff'", abi.BadFields, "UTF-8", ""},
		{"[].x + '\xff'", abi.BadFields, "UTF-8", ""},
		{"[].x\n + /(/.test('a')", abi.BadFields, "2:", ""},
		{`/` + strings.Repeat("a", 1100) + `/.test('')`, abi.BadFields, "regular expression", ""},

		{`$nil.x`, abi.Plugin, "1:6: TypeError", ""},
		{`$a[9].b`, abi.Plugin, "TypeError", ""},
		{`$unset.includes('x')`, abi.Plugin, "TypeError", "without a value: $unset"},
		{`$one.includes('x')`, abi.Plugin, "TypeError", ""},
		{`$unset.some(x => x)`, abi.Plugin, "TypeError", "without a value: $unset"},
		{`(() => { throw new RangeError('no') })()`, abi.Plugin, "RangeError: no", ""},
		{`(() => { throw 'plain' })()`, abi.Plugin, "threw plain", ""},
		{`(() => { throw { get message() { throw 1 }, toString() { throw 2 } } })()`, abi.Plugin, "no text", ""},
		{`(() => { throw new Error('x'.repeat(100000)) })()`, abi.Plugin, "Error: xxx", ""},
		{`(() => { const x = x + 1; return x })()`, abi.Plugin, "ReferenceError", ""},
		{`5n`, abi.Plugin, "BigInt", ""},
		{`(() => { let o = {}; o.o = o; return o })()`, abi.Plugin, "TypeError", ""},
		{`[].constructor.constructor('return 1')()`, abi.Plugin, "TypeError", ""},
		{`(() => 1).constructor('return 1')()`, abi.Plugin, "TypeError", ""},
		{`(function* () {}).constructor('yield 1')()`, abi.Plugin, "TypeError", ""},
		{`(() => { [].push.call(Object.freeze([]), 1) })()`, abi.Plugin, "TypeError", ""},

		{strings.Repeat(" ", 16<<10) + "1", abi.Limit, "source", ""},
		{strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300), abi.Limit, "nested", ""},
		{strings.Repeat("[", 300), abi.Limit, "nested", ""},
		{strings.Repeat("!", 1200) + "1", abi.Limit, "nested", ""},
		{`'x'.repeat(2000000)`, abi.Limit, "result", ""},
	} {
		v, err := eval(t, e, r.src, world)
		show := r.src[:min(len(r.src), 60)]
		got := abi.As(err)
		if got == nil {
			t.Errorf("%s: no error but %s", show, v.JSON)
			continue
		}
		if got.Code != r.code || !strings.Contains(got.Message, r.want) || !strings.Contains(got.Hint, r.hint) {
			t.Errorf("%s: got %s %q hint %q; want %s %q hint %q", show, got.Code, got.Message, got.Hint, r.code, r.want, r.hint)
		}
		if len(got.Message) > 700 {
			t.Errorf("%s: message of %d bytes", show, len(got.Message))
		}
		if check := e.Check(r.src); r.code == abi.BadFields && !strings.Contains(r.src, `\u0024`) && abi.CodeOf(check) != abi.BadFields {
			t.Errorf("check %s: %v", show, check)
		}
	}
}

func TestNames(t *testing.T) {
	for src, want := range map[string][]string{
		`$a.x && $b['$c'] || $a`:    {"a", "b"},
		`1`:                         nil,
		`$a.some(x => x === "$b")`:  {"a", "b"}, // only mentioned, but never fewer
		"`${$a}${ $b }`":            {"a", "b"},
		`/$a/.test($b_1)`:           {"a", "b_1"},
		`$a /* $b */`:               {"a", "b"},
		`'it' + $a.map(x => "'$b")`: {"a", "b"},
	} {
		got, err := cond.Names(src)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", src, err, diff)
		}
	}
	if _, err := cond.Names(`$a $b`); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("a broken source has names: %v", err)
	}
}

// Vars is asked once for each name of the source and for no other.
func TestVarsAsked(t *testing.T) {
	e := cond.New(cond.Options{})
	defer e.Close()
	var asked []string
	_, err := e.Eval(context.Background(), `$b.x || $a || $b`, func(name string) (json.RawMessage, bool) {
		asked = append(asked, name)
		return nil, false
	})
	if diff := cmp.Diff([]string{"b", "a"}, asked); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := e.Eval(context.Background(), `$a`, nil); err != nil {
		t.Errorf("nil vars: %v", err)
	}
}
