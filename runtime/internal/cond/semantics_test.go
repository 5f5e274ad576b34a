package cond_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var semanticsVars = values{
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
	onFastPath = "fast"
	inChild    = "child"
)

// rows have a source, its path, its value as JSON ("" for undefined) and its
// truth value.
var rows = []struct {
	src, path, json string
	truthy          bool
}{
	// Comparisons are evaluated; a text is not true because it looks like a
	// condition.
	{`1 == 0`, onFastPath, `false`, false},
	{`$buildOutput.exitCode === 0`, onFastPath, `true`, true},
	{`$buildOutput.exitCode !== 0`, onFastPath, `false`, false},
	{`$findings.complete`, onFastPath, `true`, true},
	{`'1 == 0'`, onFastPath, `"1 == 0"`, true},
	// Operands.
	{`true`, onFastPath, `true`, true}, {`false`, onFastPath, `false`, false},
	{`null`, onFastPath, `null`, false}, {`undefined`, onFastPath, ``, false},
	{`0`, onFastPath, `0`, false}, {`1.5`, onFastPath, `1.5`, true}, {`2e3`, onFastPath, `2000`, true}, {`1E-2`, onFastPath, `0.01`, true},
	{`''`, onFastPath, `""`, false}, {`"0"`, onFastPath, `"0"`, true}, {`'a\nb'`, onFastPath, `"a\nb"`, true},
	{`'\u0041\x42\\'`, onFastPath, `"AB\\"`, true}, {`"it's"`, onFastPath, `"it's"`, true}, {`'😀'.length`, onFastPath, `2`, true},
	// Truth of values.
	{`$zero`, onFastPath, `0`, false}, {`$neg`, onFastPath, `0`, false}, {`$one`, onFastPath, `1`, true}, {`$nil`, onFastPath, `null`, false},
	{`$empty`, onFastPath, `""`, false}, {`$num`, onFastPath, `"3"`, true}, {`$none`, onFastPath, `[]`, true}, {`$obj`, onFastPath, `{}`, true},
	{`0/0`, onFastPath, `null`, false}, {`1/0`, onFastPath, `null`, true}, {`-1/0`, onFastPath, `null`, true}, {`-0`, onFastPath, `0`, false},
	{`1/$neg < 0`, onFastPath, `true`, true}, {`$huge`, onFastPath, `null`, true}, {`$huge > 1`, onFastPath, `true`, true},
	{`$big`, onFastPath, `9007199254740993`, true}, {`$frac + 0.2 === 0.3`, onFastPath, `false`, false},
	// Paths.
	{`$a[0].b`, onFastPath, `"x"`, true}, {`$a[1]['b']`, onFastPath, `"y"`, true}, {`$a[$zero].b`, onFastPath, `"x"`, true},
	{`$a[9]`, onFastPath, ``, false}, {`$a.length`, onFastPath, `2`, true}, {`$buildOutput.lines[1]`, onFastPath, `"b"`, true},
	{`$a[1].c`, onFastPath, `null`, false}, {`$a[1].c?.d`, onFastPath, ``, false}, {`$a[9]?.b`, onFastPath, ``, false},
	{`$a?.[1]?.b`, onFastPath, `"y"`, true}, {`$odd['a b']`, onFastPath, `2`, true}, {`$odd.toString`, onFastPath, `1`, true},
	{`$odd.__proto__.q`, onFastPath, `1`, true}, {`$odd.constructor`, onFastPath, `null`, false}, {`$findings.class`, onFastPath, ``, false},
	{"$a\n  [0]\n  .b", onFastPath, `"x"`, true}, {`('abc')[1]`, onFastPath, `"b"`, true},
	// Names without a value, and paths through them.
	{`$unset`, onFastPath, ``, false}, {`$unset.a.b[0].c`, onFastPath, ``, false}, {`$unset[0][$unset.x]`, onFastPath, ``, false},
	{`$unset?.a.b`, onFastPath, ``, false}, {`($unset.a).b`, onFastPath, ``, false}, {`($unset?.a).b`, onFastPath, ``, false},
	{`$unset === undefined`, onFastPath, `true`, true}, {`$unset.a === undefined`, onFastPath, `true`, true},
	{`$unset == null`, onFastPath, `true`, true}, {`typeof $unset`, onFastPath, `"undefined"`, true}, {`typeof $unset.a.b`, onFastPath, `"undefined"`, true},
	{`$unset.done || $findings.complete`, onFastPath, `true`, true}, {`!$unset.done`, onFastPath, `true`, true},
	{`$unset ?? 'x'`, onFastPath, `"x"`, true}, {`$unset.n > 3`, onFastPath, `false`, false}, {`$unset && $unset.includes('x')`, onFastPath, ``, false},
	{`$unset?.includes('x')`, onFastPath, ``, false}, {`$unset.a?.includes('x')`, onFastPath, ``, false}, {`$unset?.a.includes('x')`, onFastPath, ``, false},
	{`$a[$unset]`, onFastPath, ``, false}, {`$unset.a + 1`, onFastPath, `null`, false},
	// Operators.
	{`1 + 2 * 3`, onFastPath, `7`, true}, {`(1 + 2) * 3`, onFastPath, `9`, true}, {`7 % 4 - 1`, onFastPath, `2`, true}, {`-7 % 4`, onFastPath, `-3`, true},
	{`'1' + 2`, onFastPath, `"12"`, true}, {`'3' * '4'`, onFastPath, `12`, true}, {`+$num`, onFastPath, `3`, true}, {`- -1`, onFastPath, `1`, true},
	{`!0`, onFastPath, `true`, true}, {`!!$list`, onFastPath, `true`, true}, {`typeof null`, onFastPath, `"object"`, true}, {`typeof $list`, onFastPath, `"object"`, true},
	{`typeof -$num`, onFastPath, `"number"`, true}, {`'b' > 'a'`, onFastPath, `true`, true}, {`'10' < '9'`, onFastPath, `true`, true}, {`'10' < 9`, onFastPath, `false`, false},
	{`null >= 0`, onFastPath, `true`, true}, {`null == 0`, onFastPath, `false`, false}, {`'3' == 3`, onFastPath, `true`, true}, {`'3' === 3`, onFastPath, `false`, false},
	{`0/0 == 0/0`, onFastPath, `false`, false}, {`$list == 'a,b,c'`, onFastPath, `true`, true}, {`$obj == '[object Object]'`, onFastPath, `true`, true},
	{`1 || $unset.x()`, inChild, `1`, true}, {`0 && 1`, onFastPath, `0`, false}, {`null ?? 0`, onFastPath, `0`, false}, {`(0 || 1) && 2`, onFastPath, `2`, true},
	{`1 ? 'a' : 'b'`, onFastPath, `"a"`, true}, {`0 ? 1 : 0 ? 2 : 3`, onFastPath, `3`, true}, {`true ? false ? 1 : 2 : 3`, onFastPath, `2`, true},
	{`1 < 2 === true`, onFastPath, `true`, true}, {`$list + ''`, onFastPath, `"a,b,c"`, true},
	// Methods of the fast path.
	{`$buildOutput.stdout.includes('passed')`, onFastPath, `true`, true}, {`$list.includes('z')`, onFastPath, `false`, false},
	{`$event.path.endsWith('.go')`, onFastPath, `true`, true}, {`$event.path.startsWith('src/', 0)`, onFastPath, `true`, true},
	{`$list.indexOf('c')`, onFastPath, `2`, true}, {`$text.trim().toLowerCase()`, onFastPath, `"ab"`, true}, {`'ß'.toUpperCase()`, onFastPath, `"SS"`, true},
	{`$list.slice(-2)`, onFastPath, `["b","c"]`, true}, {`$list.at(-1)`, onFastPath, `"c"`, true}, {`'abc'.slice(1, 2)`, onFastPath, `"b"`, true},
	{`($num + 'x').at(0)`, onFastPath, `"3"`, true}, {`'a'.includes('')`, onFastPath, `true`, true}, {`$list.includes()`, onFastPath, `false`, false},
	{`$s.length`, onFastPath, `10`, true}, {`$s`, onFastPath, `"Grüße 😀 \ud83d"`, true}, {`$s.indexOf('😀')`, onFastPath, `6`, true},
	{`$list`, onFastPath, `["a","b","c"]`, true}, {`$list.slice`, onFastPath, ``, true},
	// Sources that need a child.
	{`$list.some(m => m === 'b')`, inChild, `true`, true}, {`$list.filter(m => m > 'a').length`, inChild, `2`, true},
	{`$event.branch.replace('ai', 'e')`, inChild, `"men"`, true}, {`/^\d+ tests/.test($buildOutput.stdout)`, inChild, `true`, true},
	{`['main', 'dev'].includes($event.branch)`, inChild, `true`, true}, {"`${$event.branch}!`", inChild, `"main!"`, true},
	{`$list.map(function (m) { let n = m; n += '!'; return n })`, inChild, `["a!","b!","c!"]`, true},
	{`({ x: $one, ...$findings }).x`, inChild, `1`, true}, {`{ x: 1 }`, inChild, `{"x":1}`, true}, {`(({b}) => b)($a[0])`, inChild, `"x"`, true},
	{`(([p, ...q] = [1, 2, 3]) => q)()`, inChild, `[2,3]`, true}, {`Math.max(...[1, 5, 3])`, inChild, `5`, true},
	{`JSON.parse('{"k":[1]}').k[0]`, inChild, `1`, true}, {`Object.keys($findings)`, inChild, `["complete","text","items"]`, true},
	{`10n > 5n`, inChild, `true`, true}, {`2 ** 10`, inChild, `1024`, true}, {`1 << 4`, inChild, `16`, true}, {`0x10`, inChild, `16`, true}, {`.5`, inChild, `0.5`, true},
	{`NaN`, inChild, `null`, false}, {`x => x`, inChild, ``, true}, {`$yes?.5:1`, inChild, `0.5`, true}, {`(1, 2)`, inChild, `2`, true},
	{`1 // one`, inChild, `1`, true}, {`1 /* , 2 */`, inChild, `1`, true}, {`'b' in { b: 1 }`, inChild, `true`, true}, {`[] instanceof Array`, inChild, `true`, true},
	{`$unset?.foo()`, inChild, ``, false}, {`$unset.foo?.()`, inChild, ``, false}, {`[$unset.a.b].length`, inChild, `1`, true}, {"`${$unset.a}`", inChild, `"undefined"`, true},
	{`(x => x.a)({ a: $unset.b.c })`, inChild, ``, false}, {`[$one].map(x => $unset.y)`, inChild, `[null]`, true}, {`({ $one })`, inChild, `{"$one":1}`, true},
	{`[].constructor.constructor('return 1')()`, inChild, ``, false}, {`(() => 1).constructor('return 1')()`, inChild, ``, false}, {`(function* () {}).constructor('yield 1')()`, inChild, ``, false},
	{`5n`, inChild, `5`, true}, {`$odd + ''`, onFastPath, `"[object Object]"`, true}, {`this`, inChild, ``, false}, {`(() => { try { throw 1 } catch (e) { return 'caught' } })()`, inChild, `"caught"`, true},
	// "a path or a call on a missing value is undefined at any depth, never an exception"
	{`$nil.x`, onFastPath, ``, false}, {`$a[9].b`, onFastPath, ``, false}, {`$a[1].c.d.e[0]`, onFastPath, ``, false}, {`null.x`, onFastPath, ``, false},
	{`$unset.includes('x')`, onFastPath, ``, false}, {`$one.includes('x')`, onFastPath, ``, false}, {`$findings.missing.length > 0`, onFastPath, `false`, false},
	{`$unset.some(x => x)`, inChild, ``, false}, {`$findings.items.find(i => i.ok).name.trim()`, inChild, ``, false}, {`$a.filter(i => i.d.e.includes('x')).length`, inChild, `0`, false},
	{`JSON.parse('null').x.y()`, inChild, ``, false}, {`$unset()`, inChild, ``, false}, {`$a.map(i => i.b?.toUpperCase())`, inChild, `["X","Y"]`, true},
	{`(() => { const o = {}; o.n = 1; o['m'] = o.n + 1; delete o.n; for (o.k of [3]) {} return o })()`, inChild, `{"m":2,"k":3}`, true},
	{`new Map([[1, {a: 2}]]).get(1).a`, inChild, `2`, true}, {"((s, ...p) => s[0] + p[0])`x${1}`", inChild, `"x1"`, true},
	{`Symbol('x')`, inChild, ``, true}, {`({ toJSON() { return 7 } })`, inChild, `7`, true}, {`[1, 2, 3].reduce((a, b) => a + b)`, inChild, `6`, true},
}

func TestSemantics(t *testing.T) {
	e := open(t, cond.Options{})
	for _, r := range rows {
		got, err := eval(t, e, r.src, semanticsVars)
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
		if fast := cond.Fast(r.src); fast != (r.path == onFastPath) {
			t.Errorf("%s: fast path %v", r.src, fast)
		}
		if err := check(e, r.src); err != nil {
			t.Errorf("check %s: %v", r.src, err)
		}
		// Both paths agree.
		other, err := cond.EvalAsChild(r.src, semanticsVars.vars())
		if diff := cmp.Diff(got, other); diff != "" || err != nil {
			t.Errorf("%s: the result of a child differs: %v\n%s", r.src, err, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	e := open(t, cond.Options{ChildTimeout: 20 * time.Second}) // no case is about time
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
		{`$a && ($one`, abi.BadFields, `1:12: unexpected end, want ")"`, ""},
		{`$a)`, abi.BadFields, `1:3: unexpected ")"`, ""},
		{"$a\n  === === 1", abi.BadFields, `2:7: unexpected "==="`, ""},
		{`$a $b`, abi.BadFields, "1:4", ""},
		{`$a and $b`, abi.BadFields, "1:4", "&&"},
		{`$a.`, abi.BadFields, "1:4: unexpected end", ""},
		{`$a = 1`, abi.BadFields, "1:4: an expression cannot assign", "==="},
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
		{`$`, abi.BadFields, "invalid variable name", ""},
		{`$$x`, abi.BadFields, "invalid variable name", ""},
		{`$1`, abi.BadFields, "invalid variable name", ""},
		{`\u0024one`, abi.BadFields, "escape", ""},
		{`new Date() > 0`, abi.BadFields, `unknown name "Date"`, "use $NOW"},
		{`Math.random() < 0.5`, abi.BadFields, "Math.random", "use $iteration"},
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

		{`$big + 1`, abi.Plugin, "BigInt", "9007199254740993 is over 2^53 and therefore a BigInt, which keeps its digits: write BigInt($x) + 1n"},
		{`$one + 1n`, abi.Plugin, "BigInt", "write BigInt($x) + 1n"},
		{`$big === 9007199254740993`, abi.BadFields, "would be rounded", "write 9007199254740993n"},
		{`$obj.hasOwnProperty('a')`, abi.BadFields, "1:6: hasOwnProperty is not here: use Object.hasOwn", ""},
		{`Object.groupBy($list, x => x)`, abi.BadFields, "1:1: Object.groupBy is not here: use $list.reduce", ""},
		{`Object?.groupBy($list, x => x)`, abi.BadFields, "Object.groupBy is not here: use ", ""},
		{`$list.map(Math.sumPrecise)`, abi.BadFields, "Math.sumPrecise is not here: use ", ""},
		{`$list.group(x => x)`, abi.BadFields, "group is not here: use ", ""},
		{`$unset?.group(x => x)`, abi.BadFields, "group is not here: use ", ""},
		{`'x'.isWellFormed()`, abi.BadFields, "isWellFormed is not here: use ", ""},
		{`structuredClone($obj)`, abi.BadFields, "structuredClone is not here: use JSON.parse(JSON.stringify($x))", ""},
		{`fetch('http://x').ok`, abi.BadFields, "fetch is not here: use a shell step with curl", ""},
		{`fetch`, abi.BadFields, "fetch is not here: use ", ""},
		{`new Map([[1, 2]]).values().map(x => x)`, abi.BadFields,
			"map of the iterator that values returns is not here: use Array.from(x.values(...)).map", ""},
		{`'a1b2'.matchAll(/[0-9]/g).toArray()`, abi.BadFields, "Array.from(x.matchAll(...)).toArray", ""},
		{`[...$unset]`, abi.Plugin, "TypeError", "without a value: $unset"},
		{`(() => { throw new RangeError('no') })()`, abi.Plugin, "RangeError: no", ""},
		{`(() => { throw 'plain' })()`, abi.Plugin, "threw plain", ""},
		{`(() => { throw { get message() { throw 1 }, toString() { throw 2 } } })()`, abi.Plugin, "without a text form", ""},
		{`(() => { throw new Error('x'.repeat(100000)) })()`, abi.Plugin, "xxx", ""},
		{`(() => { throw new Error('') })()`, abi.Plugin, "expression at 1:16: Error: ", ""},
		{`(() => { const x = x + 1; return x })()`, abi.Plugin, "ReferenceError", ""},
		{`(() => { let o = {}; o.o = o; return o })()`, abi.Plugin, "TypeError", ""},
		{`new Map([[1, 2]])`, abi.Plugin, "expression: TypeError: the value has a Map, which JSON does not have: use Object.fromEntries", ""},
		{`({tags: [new Set([1])]})`, abi.Plugin, "expression: TypeError: the value has a Set, which JSON does not have: use Array.from", ""},
		{`'a1b2'.matchAll(/[0-9]/g)`, abi.Plugin, "the value has an iterator, which JSON does not have: use Array.from", ""},
		{`new Set([1]).values()`, abi.Plugin, "the value has an iterator", ""},
		{`[1].entries()`, abi.Plugin, "the value has an iterator", ""},
		{`(() => { [].push.call(Object.freeze([]), 1) })()`, abi.Plugin, "TypeError", ""},

		{strings.Repeat(" ", 16<<10) + "1", abi.Limit, "source", ""},
		{strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300), abi.Limit, "nested", ""},
		{strings.Repeat("[", 300), abi.Limit, "nested", ""},
		{strings.Repeat("!", 1200) + "1", abi.Limit, "nested", ""},
		{`'x'.repeat(17000000)`, abi.Limit, "result", ""},
	} {
		v, err := eval(t, e, r.src, semanticsVars)
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
		if check := check(e, r.src); r.code == abi.BadFields && !strings.Contains(r.src, `\u0024`) && abi.CodeOf(check) != abi.BadFields {
			t.Errorf("check %s: %v", show, check)
		}
	}
}

func TestNames(t *testing.T) {
	for src, want := range map[string][]string{
		`$a.x && $b['$c'] || $a`:    {"a", "b"},
		`1`:                         nil,
		`$a.some(x => x === "$b")`:  {"a", "b"}, // also a name in a string; never fewer
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

// Vars is called once for each name in the source and for no other.
func TestVarsAsked(t *testing.T) {
	e := cond.New(cond.Options{})
	defer e.Close()
	var names []string
	_, err := e.Eval(context.Background(), "", `$b.x || $a || $b`, func(name string) (json.RawMessage, bool) {
		names = append(names, name)
		return nil, false
	})
	if diff := cmp.Diff([]string{"b", "a"}, names); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := e.Eval(context.Background(), "", `$a`, nil); err != nil {
		t.Errorf("nil vars: %v", err)
	}
}

// TestWholeNumbersKeepDigits sends whole numbers about 2^53 through JSON.stringify, JSON.parse, templates, spread and map.
func TestWholeNumbersKeepDigits(t *testing.T) {
	e := open(t, cond.Options{})
	for _, n := range []string{"9007199254740990", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "18446744073709551617", "7"} {
		vars := values{"x": `{"id":` + n + `,"in":[` + n + `]}`, "text": `"{\"id\":` + n + `,\"in\":[` + n + `]}"`}
		whole := `{"id":` + n + `,"in":[` + n + `]}`
		quoted, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		for src, want := range map[string]string{
			`JSON.stringify($x)`:                          string(quoted),
			`JSON.parse(JSON.stringify($x))`:              whole,
			`JSON.parse($text)`:                           whole,
			`JSON.parse($text, (k, v) => v)`:              whole,
			`JSON.stringify(JSON.parse($text))`:           string(quoted),
			`JSON.stringify($x, (k, v) => v)`:             string(quoted),
			"`${$x.id}`":                                  `"` + n + `"`,
			`({...$x})`:                                   whole,
			`$x.in.map(n => n)`:                           `[` + n + `]`,
			`$x.in.map(n => JSON.stringify({n}))[0]`:      `"{\"n\":` + n + `}"`,
			`JSON.parse('[' + $x.id + ']')[0] === $x.id`:  `true`,
			`BigInt($x.id) - 1n + 1n === BigInt($x.id)`:   `true`,
			`JSON.stringify({t: 'bigint', a: [{}, 'x']})`: `"{\"t\":\"bigint\",\"a\":[{},\"x\"]}"`,
		} {
			v, err := eval(t, e, src, vars)
			if err != nil || string(v.JSON) != want {
				t.Errorf("%s of %s = %s, %v; want %s", src, n, v.JSON, err, want)
			}
		}
	}
	if _, err := eval(t, e, `JSON.parse('[9007199254740993')`, values{}); err == nil || !strings.Contains(err.Error(), "SyntaxError") {
		t.Errorf("a text that is not JSON: %v", err)
	}
}

// TestLargeList: a condition over a list of more than 1 MB, of which it reads each item, is right, and done within the
// limit of an evaluation.
func TestLargeList(t *testing.T) {
	const items = 20_000
	var list strings.Builder
	for i := range items {
		fmt.Fprintf(&list, `%s{"id":%d,"name":"item number %d of the list","done":%t}`, map[bool]string{true: "[", false: ","}[i == 0], i, i, i%2 == 0)
	}
	list.WriteString("]")
	if list.Len() < 1<<20 {
		t.Fatalf("a list of %d bytes", list.Len())
	}
	e := open(t, cond.Options{})
	for src, want := range map[string]string{
		`$list.length === 20000`:                                                       "true",
		`$list.filter(x => x.done).length`:                                             "10000",
		`$list.reduce((sum, x) => sum + x.id, 0)`:                                      "199990000",
		`$list.some(x => x.name === 'item number 19999 of the list')`:                  "true",
		`$list.every(x => x.id < 19999)`:                                               "false",
		`$list.toSorted((a, b) => b.id - a.id)[0].id`:                                  "19999",
		`$list.at(-1).name.length + $list.findIndex(x => x.id === 12345)`:              "12374",
		`JSON.stringify($list) === JSON.stringify($other) && $list.length > 0 && true`: "true",
	} {
		v, err := eval(t, e, src, values{"list": list.String(), "other": list.String()})
		if err != nil || string(v.JSON) != want {
			t.Errorf("%s: %s, %v, want %s", src, v.JSON, err, want)
		}
	}
}
