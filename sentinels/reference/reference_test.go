package reference_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// variables of the tests below.
var variables = map[string]string{
	"n": `5`, "s": `"text"`, "b": `true`, "z": `null`, "list": `[1, [2, {"x": "deep"}]]`,
	"review": `{"text": "looks \"good\"", "usage": {"tokens": 12}}`,
	"lines":  `[{"text": "one", "classification": "error"}, {"text": "two"}]`,
	"obj":    `{"a": {"b_1": [10, 20]}, "<": "&"}`,
	"evil":   `"'; rm -rf / #$(touch x)"`,
	"empty":  `[]`, "nul": `"a\u0000b"`, "quote": `"it's $HOME"`, "utf": `"ä😀"`,
	"secret": `{"secret":"X"}`,
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
		{`"$unset.x[0]"`, `"$unset.x[0]"`, []string{"$unset.x[0]"}},
		{`"$n?.x"`, `null`, nil},
		{`"<$list?.[7]>"`, `"<>"`, nil},
		{`"$review?.usage.tokens $review.usage?.tokens"`, `"12 12"`, nil},
		{`"$review.usages?.tokens"`, `null`, nil}, // as in JavaScript
		{`"$z?.a.b"`, `null`, nil},
		{`"Is it $n? Or $n?."`, `"Is it 5? Or 5?."`, nil},
		{`"$obj['<'] $obj[\"<\"] $obj[\"a\"].b_1[0] $n[\"\"] $n['x"`, `"& & 10 5[\"\"] 5['x"`, nil},
		{`"Ask $n. Then [$n] go."`, `"Ask 5. Then [5] go."`, nil},
		{`{"$n": "$n", "a": ["$s", {"b": "$b"}]}`, `{"$n":5,"a":["text",{"b":true}]}`, nil},
		{`"\u0024n"`, `5`, nil},
		{`{"plain": [1, "x"]}`, `{"plain": [1, "x"]}`, nil},
		{`"$s$s"`, `"texttext"`, nil},
		{`"$n_"`, `"$n_"`, []string{"$n_"}},
		// Braces end a reference before other text.
		{`"${n}"`, `5`, nil},
		{`"${s}.json ${review.usage.tokens}px ${list[0]}${n}"`, `"text.json 12px 15"`, nil},
		{`"${z?.a} ${review?.nothing}|"`, `" |"`, nil},
		{`"$${n} ${n ${} ${5} ${n:-1} $ {n}"`, `"${n} ${n ${} ${5} ${n:-1} $ {n}"`, nil},
		{`"${unset}"`, `"${unset}"`, []string{"${unset}"}},
	} {
		out, notes, err := reference.Resolve(json.RawMessage(tt.in), lookup)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if string(out) != tt.out {
			t.Errorf("%s became %s, want %s", tt.in, out, tt.out)
		}
		if diff := cmp.Diff(tt.unknown, notes.Unknown); diff != "" {
			t.Errorf("%s: unknown (-want +got):\n%s", tt.in, diff)
		}
	}
	if _, _, err := reference.Resolve(json.RawMessage(`"$n`), lookup); err == nil {
		t.Error("broken JSON is resolved")
	}
}

// TestMissing quotes the specification: "a value without the path asked for is an error of
// the step that names what exists".
func TestMissing(t *testing.T) {
	for in, want := range map[string]string{
		`"$review.usage.token"`: "$review.usage.token: $review.usage has tokens",
		`"Say $review.txt"`:     "$review.txt: $review has text, usage",
		`"$list[7]"`:            "$list[7]: $list is a list with 2 items",
		`"$n.x"`:                "$n.x: $n is a number",
		`"$s.x.y"`:              "$s.x.y: $s is a text",
		`"$z.x"`:                "$z.x: $z is null",
		`"$b.x"`:                "$b.x: $b is a boolean",
		`"$obj['a'].b"`:         "$obj['a'].b: $obj['a'] has b_1",
		`"$obj.a.b?.c.d.b_1"`:   "",
		`"$obj?.a.b_1[9]"`:      "$obj?.a.b_1[9]: $obj?.a.b_1 is a list with 2 items",
	} {
		_, _, err := reference.Resolve(json.RawMessage(in), lookup)
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && err != nil {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	_, _, err := reference.Resolve(json.RawMessage(`"$f.items"`), func(string) (json.RawMessage, bool) { return json.RawMessage(`"{\"items\":[]}"`), true })
	if missing := (*reference.MissingError)(nil); !errors.As(err, &missing) || !strings.Contains(missing.Hint, `"parse": "json"`) {
		t.Errorf("%v has no hint", err)
	}
	number := func(string) (json.RawMessage, bool) { return json.RawMessage(`{"n": 3, "list": []}`), true }
	_, _, err = reference.Resolve(json.RawMessage(`"out/$f.n.pid"`), number)
	_, _, problems := reference.ShellLine(map[string]string{}, `echo >$f.n.pid`, number)
	_, _, list := reference.Resolve(json.RawMessage(`"$f.list.pid"`), number)
	for err, want := range map[error]string{
		err:         `write "${f.n}.pid" if .pid is text behind the value`,
		problems[0]: `write "$f.n".pid if .pid is text behind the value`,
		list:        "",
	} {
		if missing := (*reference.MissingError)(nil); !errors.As(err, &missing) || missing.Hint != want {
			t.Errorf("%v: %+v, want the hint %q", err, missing, want)
		}
	}
}

// TestUnset quotes the specification: "a variable that has no value yet is null with a
// warning in the trace".
func TestUnset(t *testing.T) {
	declared := func(name string) (json.RawMessage, bool) { return nil, name == "later" }
	for in, want := range map[string]string{`"$later"`: `null`, `"$later.x[0]"`: `null`, `"a $later.x b"`: `"a  b"`} {
		out, notes, err := reference.Resolve(json.RawMessage(in), declared)
		if err != nil || string(out) != want || len(notes.Unset) != 1 || len(notes.Unknown) != 0 {
			t.Errorf("%s: %s, %+v, %v; want %s", in, out, notes, err, want)
		}
	}
	env := map[string]string{}
	line, notes, problems := reference.ShellLine(env, `echo "$later.x"`, declared)
	if line != `echo "${SENTINEL_1}"` || env["SENTINEL_1"] != "" || len(notes.Unset) != 1 || len(problems) != 0 {
		t.Errorf("%s %v %+v %q", line, env, notes, problems)
	}
}

// TestResolveWithShape resolves references to text if the schema requires a string.
func TestResolveWithShape(t *testing.T) {
	schema := json.RawMessage(`{"type": "object", "$defs": {"t": {"type": ["string", "null"]}},
		"properties": {"message": {"type": "string"}, "any": {}, "count": {"type": "integer"}, "ref": {"$ref": "#/$defs/t"},
			"either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
			"list": {"type": "array", "items": {"type": "string"}}, "env": {"type": "object", "additionalProperties": {"type": "string"}},
			"mixed": {"type": "object", "additionalProperties": {"anyOf": [{"type": ["string", "number", "boolean"]},
				{"type": "object", "properties": {"secret": {"type": "string"}}, "required": ["secret"], "additionalProperties": false}]}}}}`)
	in := `{"message":"$review","any":"$review","count":"$n","ref":"$n","either":"$review","list":["$n","$lines"],"env":{"A":"$obj.a"},` +
		`"mixed":{"LIST":"$obj.a.b_1","OBJECT":"$obj.a","NULL":"$z","N":"$n","S":{"secret":"TOKEN"},"INDIRECT":"$secret"}}`
	want := `{"message":"looks \"good\"","any":` + variables["review"] + `,"count":5,"ref":"5","either":` + variables["review"] +
		`,"list":["5","one\ntwo"],"env":{"A":"{\"b_1\":[10,20]}"},` +
		`"mixed":{"LIST":"[10,20]","OBJECT":"{\"b_1\":[10,20]}","NULL":"","N":"5","S":{"secret":"TOKEN"},"INDIRECT":{"secret":"X"}}}`
	out, _, err := shape(t, schema).Resolve(json.RawMessage(in), lookup)
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s, want\n%s", err, out, want)
	}
}

// shape reads a schema.
// TestValueIsPassedOn: a value that is the whole of a text is not copied, also where a text is required: it has
// the bytes that it had, unless readers could differ about them.
func TestValueIsPassedOn(t *testing.T) {
	texts := shape(t, json.RawMessage(`{"type":"string","properties":{"a":{"type":"string"}}}`))
	for value, want := range map[string]string{
		`"a\/b \"c\" é"`:        `"a\/b \"c\" é"`,
		`"\u00e9"`:              `"é"`,
		`"\ud800"`:              `"\ufffd"`,
		"\"\xff\"":              `"` + "\ufffd" + `"`,
		`{"a":[1.50,"\ud800"]}`: `"{\"a\":[1.50,\"\\ud800\"]}"`,
		`null`:                  `""`,
	} {
		var raw json.RawMessage
		lookup := func(string) (json.RawMessage, bool) { raw = json.RawMessage(value); return raw, true }
		plain, _, err := reference.Resolve(json.RawMessage(` "$v" `), lookup)
		if err != nil || &plain[0] != &raw[0] {
			t.Errorf("%s became %s, %v: want the value itself", value, plain, err)
		}
		got, _, err := texts.Resolve(json.RawMessage(`"$v"`), lookup)
		inner, _, err2 := texts.Resolve(json.RawMessage(`{"a":"$v"}`), lookup)
		if err != nil || err2 != nil || string(got) != strings.ReplaceAll(want, `\ufffd`, "\ufffd") || string(inner) != `{"a":`+string(got)+`}` {
			t.Errorf("%s as a text became %s and %s, %v %v, want %s", value, got, inner, err, err2, want)
		}
	}
}

func shape(t testing.TB, schema json.RawMessage) *reference.Shape {
	t.Helper()
	shape, err := reference.NewShape(schema)
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

// TestShapeRecursion reads a schema that is recursive in several ways.
func TestShapeRecursion(t *testing.T) {
	schema := json.RawMessage(`{"$ref": "#/$defs/node", "$defs": {"loop": {"$ref": "#/$defs/loop"}, "node": {"type": "object", "properties": {
		"text": {"type": "string"}, "odd": {"$ref": "#/$defs/loop"},
		"a": {"$ref": "#/$defs/node"}, "b": {"$ref": "#/$defs/node"}, "c": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}}`)
	in := json.RawMessage(`{"text":"$n","a":{"b":{"c":[{"text":"$n","x":"$n","odd":"$n"}]}}}`)
	out, _, err := shape(t, schema).Resolve(in, lookup)
	if want := `{"text":"5","a":{"b":{"c":[{"text":"5","x":5,"odd":5}]}}}`; err != nil || string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}

// TestResolveLimit resolves a text that contains a long value many times.
func TestResolveLimit(t *testing.T) {
	long, _ := json.Marshal(strings.Repeat("x", 1<<20))
	in, _ := json.Marshal(strings.Repeat("$a ", 40))
	_, _, err := reference.Resolve(in, func(string) (json.RawMessage, bool) { return long, true })
	if !errors.Is(err, reference.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	list := json.RawMessage("[" + strings.Repeat(`"$a",`, 40) + `"$a"]`)
	if _, _, err := reference.Resolve(list, func(string) (json.RawMessage, bool) { return long, true }); !errors.Is(err, reference.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestNames(t *testing.T) {
	got := reference.Names(json.RawMessage(`{"$key": ["$b.c[0] $a $$no", {"x": "\u0024c"}], "y": "$b"}`))
	if diff := cmp.Diff([]string{"b", "a", "c"}, got); diff != "" {
		t.Error(diff)
	}
	got = reference.NamesInExpression(`$a.x === "$no" && /* $no */ !$b['$no'] || $c?.d.$no // $no`)
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPath(t *testing.T) {
	for path, want := range map[string]string{"": variables["obj"], "a.b_1[0]": "10", ".a.b_1": "[10, 20]", "a.x": "", "a[0]": "", "b_1": "", "[": "", ".": "", "a..b_1": "", "a.b_1[x]": "", "a.b_1[-1]": "", "a?.b_1[0]": "10", "a?.x": "null", "x?.y.z": "null", `["a"].b_1[1]`: "20", `["<"]`: `"&"`} {
		got, ok := reference.Path(json.RawMessage(variables["obj"]), path)
		if ok != (want != "") || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", path, got, ok, want)
		}
	}
	for _, tt := range []struct{ value, path, want string }{
		{`{"a":{"x":1},"a":{"x":2},"b":3}`, "a.x", "2"}, // the last of two equal names
		{`{"a":{"x":1},"a":{"y":2}}`, "a.x", ""},
		{`{"a":[{"x":1},2],"a":[{"x":[3, 4]},5],"b":6}`, "a[0].x[1]", "4"},
		{`{"a":{"a":1},"a":5}`, "a.a", ""},
		{`{"a":[1,{"a":2}],"b":[{"a":3}]}`, "a[0]", "1"},
		{`{"a":[1,{"a":2}],"\u0061":[4]}`, "a[0]", "4"},
		{`{"a":[1],"aa":["a",2],"c":"say a"}`, "a[0]", "1"},
		{`{"a":[1],"aa":[2],"a" :[3]}`, "a[0]", "3"},
		{`{"a":{"x":[1,2]},"b":"x","a":{"x":[3]}}`, "a.x[0]", "3"},
		{`{"a":{"x":[1,2]},"b":"x","a":{"x":[3]}}`, "a.x[1]", ""},
		{`{"a":1,"a":2,"b":3,"a":4,"c":5}`, "a", "4"},
		{`{"a":[[1],[2]],"b":[3]}`, "b[0]", "3"},
		{`{"a":[[1],[2]],"b":[3]}`, "b[1]", ""},
		{`[[], {"\u0061": "x"}]`, "[1].a", `"x"`},
		{`[[], {"\u0061": "x"}]`, "[1].a.length", "1"},
		{`[[], {"\u0061": "x"}]`, "length", "2"},
		{`[[], {"\u0061": "x"}]`, "length.x", ""},
		{`{"length": 7}`, "length", "7"},
		{"\"\\ud83d\\ude00 \\u00e9 \\n\\\" é \U0001f600 \\ud800\xff\"", "length", "15"},
		{` {"a" : 1 } `, "", `{"a" : 1 }`},
		{`{"a":`, "a", ""},
		{`[1,`, "[1]", ""},
		{``, "a", ""},
	} {
		got, ok := reference.Path(json.RawMessage(tt.value), tt.path)
		if ok != (tt.want != "") || string(got) != tt.want {
			t.Errorf("%s of %s: %s, %v; want %s", tt.path, tt.value, got, ok, tt.want)
		}
	}
}

// FuzzResolve checks that the result is valid JSON, and that a text without dollars
// does not change.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{`"$n"`, `{"a":["$list[0] $$ $review"]}`, `"\u0024obj.a.b_1[0]"`, `"$utf.length$"`, `"$$$$n$"`} {
		f.Add(s)
	}
	texts := shape(f, json.RawMessage(`{"type":"string","properties":{"a":{"items":{"type":"string"}}}}`))
	f.Fuzz(func(t *testing.T, s string) {
		reference.ResolveText(s, lookup)
		reference.NamesInExpression(s)
		reference.TestedIn(s)
		raw := json.RawMessage(s)
		if !json.Valid(raw) {
			return
		}
		for _, resolve := range []func() (json.RawMessage, reference.Notes, error){
			func() (json.RawMessage, reference.Notes, error) { return reference.Resolve(raw, lookup) },
			func() (json.RawMessage, reference.Notes, error) { return texts.Resolve(raw, lookup) },
		} {
			out, notes, err := resolve()
			if missing := (*reference.MissingError)(nil); errors.As(err, &missing) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(out) {
				t.Fatalf("%s became %s", raw, out)
			}
			if len(reference.Names(raw)) == 0 && len(notes.Unknown) > 0 {
				t.Fatalf("%s: unknown %q without a reference", raw, notes.Unknown)
			}
		}
		reference.Text(raw)
	})
}

// FuzzPath compares the parts of values with those that encoding/json decodes.
func FuzzPath(f *testing.F) {
	f.Add(`{"a":{"b":[1,{"a":2}]},"b":3}`)
	f.Add(`{"a":{"b":1},"\u0061":{"b":[2]},"b":"x"}`)
	f.Add(`[[{"a":1,"a":[2]}],"b"]`)
	f.Add("\"\\ud83d\\ude00\\u00e9\\n\U0001f600\\ud800\xe2\x80\"")
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return
		}
		if s, ok := value.(string); ok {
			want := strconv.Itoa(len(utf16.Encode([]rune(s))))
			if got, ok := reference.Path(json.RawMessage(text), "length"); !ok || string(got) != want {
				t.Fatalf("length of %s: %s, want %s", text, got, want)
			}
		}
		for _, path := range []string{"a", "b", "a.b", "a.a", "a.b[0]", "[0]", "[0][0].a", "[1]", "a[1].a", "a.b.a"} {
			want, exists := value, true
			for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
				switch at := want.(type) {
				case map[string]any:
					want, exists = at[step]
					exists = exists && strings.Trim(step, "01") != "" // an index is not a key
				case []any:
					i, err := strconv.Atoi(step)
					if exists = err == nil && i < len(at); exists {
						want = at[i]
					}
				default:
					exists = false
				}
				if !exists {
					break
				}
			}
			raw, ok := reference.Path(json.RawMessage(text), path)
			if ok != exists {
				t.Fatalf("%s of %s: %s, %v", path, text, raw, ok)
			}
			var got any
			if ok && (json.Unmarshal(raw, &got) != nil || !reflect.DeepEqual(got, want)) {
				t.Fatalf("%s of %s: %s, want %v", path, text, raw, want)
			}
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	for name, in := range map[string]string{
		"plain":     `{"operation":"commit","message":"Build passes","paths":["."]}`,
		"reference": `{"executionId":"$obj.a","message":"Fix these:\n$lines","n":"$n"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := reference.Resolve(json.RawMessage(in), lookup); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPath reads one value of a variable of 1 MB, and one of a small variable.
func BenchmarkPath(b *testing.B) {
	for name, c := range map[string]struct{ value, path string }{
		"large":       {`{"list":[` + strings.Repeat(`{"a":"some text","b":[1,2,3]},`, 33_000) + `0],"last":{"x":1}}`, "last.x"},
		"equal names": {`{` + strings.Repeat(`"\u0061":{"x":1},`, 60_000) + `"b":2}`, "a.x"},
		"small":       {`{"text":"looks \"good\"","usage":{"tokens":12,"cost":0.5},"list":[1,{"x":"deep"}]}`, "list[1].x"},
	} {
		b.Run(name, func(b *testing.B) {
			value := json.RawMessage(c.value)
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				if _, ok := reference.Path(value, c.path); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}
