package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// outline lists the nodes of a tree with their offsets and paths.
func outline(n *strictjson.Node) []string {
	list := []string{fmt.Sprintf("%s %c %d-%d %q", n.Path(), n.Kind, n.Start, n.End, n.Text)}
	for _, item := range n.Items {
		list = append(list, outline(item)...)
	}
	for _, m := range n.Members {
		list = append(list, fmt.Sprintf("key %q %d-%d", m.Name, m.Start, m.End))
		list = append(list, outline(m.Value)...)
	}
	return list
}

func TestParse(t *testing.T) {
	tree := strictjson.ParseWithComments([]byte("// c\n{\"a\" /* , */ : [1.50, \"\\u00e4\",], \"x y\":{},}"), strictjson.Limits{})
	if len(tree.Errors) > 0 {
		t.Fatal(tree.Errors)
	}
	want := []string{
		` { 5-49 ""`,
		`key "a" 6-9`, `a [ 20-37 ""`, `a[0] 0 21-25 "1.50"`, `a[1] " 27-35 "ä"`,
		`key "x y" 39-44`, `["x y"] { 45-47 ""`,
	}
	if diff := cmp.Diff(want, outline(tree.Root)); diff != "" {
		t.Error(diff)
	}
	if got := string(tree.Root.Canonical()); got != `{"a":[1.50,"ä"],"x y":{}}` {
		t.Error(got)
	}
	if !json.Valid(tree.Text) {
		t.Errorf("%q", tree.Text)
	}
}

// TestParseErrors expects every problem of a text.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string][]string{
		`{"a": 1, "a": {"b": 1e999, "b": 2}, "c": "\ud800"}`: {
			`line 1, column 10: a: duplicate key "a", first at line 1, column 2`,
			`line 1, column 21: a.b: the number 1e999 is out of range`,
			`line 1, column 28: a.b: duplicate key "b", first at line 1, column 16`,
			`line 1, column 42: c: the escape \ud800 is half of a surrogate pair`,
		},
		"[1, /* x":                 {`line 1, column 5: [1]: the comment does not end`},
		"[1 2]":                    {`line 1, column 4: [1]: invalid character '2' after array element (expecting ',' or ']')`},
		"[,]":                      {`line 1, column 2: [0]: invalid character ',' at start of value`},
		"[1,,]":                    {`line 1, column 4: [1]: invalid character ',' at start of value`},
		"{,}":                      {`line 1, column 2: invalid character ',' at start of value`},
		"\"a\" // b\nx":            {`line 2, column 1: text after the JSON value`},
		"[\"\xff\"]":               {`line 1, column 3: byte 0xff is not UTF-8`},
		strings.Repeat("[", 65):    {"line 1, column 65: " + strings.Repeat("[0]", 64) + `: arrays and objects are nested more than 64 deep`},
		strings.Repeat(" ", 2<<20): {`line 1, column 1: the text has 2097152 bytes, the limit is 1048576`},
	} {
		var got []string
		tree := strictjson.ParseWithComments([]byte(text), strictjson.Limits{})
		for _, e := range tree.Errors {
			got = append(got, e.Error())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.40s: %s", text, diff)
		}
	}
}

func TestNodeFind(t *testing.T) {
	root := strictjson.Parse([]byte(`{"steps": [{"id": "a"}, {"x y": 1, "a.b": {"c": 2}, "then": {}}], "old": 3}`), strictjson.Limits{}).Root
	aliases := func(key string) []string {
		if key == "new" {
			return []string{"older", "old"}
		}
		return nil
	}
	for path, found := range map[string]string{
		"": "", "steps[0].id": "steps[0].id", `steps[1]["x y"]`: `steps[1]["x y"]`, `steps[1]["a.b"].c`: `steps[1]["a.b"].c`,
		"steps[1].then[2].x": "steps[1].then", "steps[7]": "steps", "steps.id": "steps", "new": "old", "old": "old", "steps[x": "steps",
	} {
		if got := root.Find(path, aliases).Path(); got != found {
			t.Errorf("%q: found %q, want %q", path, got, found)
		}
	}
}

func TestNodeEqual(t *testing.T) {
	texts := []string{`{"a":1,"b":[2,"x"]}`, `{"a":1,"b":[2,"y"]}`, `{"a":1,"c":[2,"x"]}`, `{"a":1}`, `[1]`, `[2]`, `1`, `1.0`, `"1"`, `null`, `true`, `false`}
	for i, a := range texts {
		for j, b := range texts {
			x, y := strictjson.Parse([]byte(a), strictjson.Limits{}).Root, strictjson.Parse([]byte(b), strictjson.Limits{}).Root
			if x.Equal(y) != (i == j) {
				t.Errorf("%s and %s", a, b)
			}
		}
	}
	x := strictjson.Parse([]byte(`{"b": [2, "\u0078"], "a": 1}`), strictjson.Limits{}).Root
	if !x.Equal(strictjson.Parse([]byte(texts[0]), strictjson.Limits{}).Root) {
		t.Error("another order is another value")
	}
}

// TestPathsAreNotStored parses many values below long keys: their paths together would
// have gigabytes.
func TestPathsAreNotStored(t *testing.T) {
	key := `{"` + strings.Repeat("k", 8<<10) + `":`
	const depth = 30
	text := []byte(strings.Repeat(key, depth) + "[" + strings.Repeat("1,", 200_000) + "1]" + strings.Repeat("}", depth))
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if tree := strictjson.Parse(text, strictjson.Limits{}); len(tree.Errors) > 0 {
				b.Fatal(tree.Errors)
			}
		}
	})
	if got := result.AllocedBytesPerOp(); got > 200<<20 {
		t.Errorf("%d bytes for a text of %d", got, len(text))
	}
}

func TestEach(t *testing.T) {
	var got []string
	strictjson.EachMember([]byte(` {"a": [1, 2] , "\u0062":{"c":null}, "a":3} `), func(name, value []byte) bool {
		got = append(got, string(name)+string(value))
		return true
	})
	strictjson.EachItem([]byte(`[ 1 , "x" , {} , 4]`), func(value []byte) bool {
		got = append(got, string(value))
		return string(value) != "{}"
	})
	for _, text := range []string{"", "1", "{}", "[]", "[", `{"a"`, `{"a":`, "]", "[}"} {
		strictjson.EachItem([]byte(text), func([]byte) bool { t.Errorf("item of %q", text); return true })
		strictjson.EachMember([]byte(text), func(_, _ []byte) bool { t.Errorf("member of %q", text); return true })
	}
	if diff := cmp.Diff([]string{`"a"[1, 2]`, `"\u0062"{"c":null}`, `"a"3`, `1`, `"x"`, `{}`}, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse asserts that the tree has an error exactly if Check has one, that its
// positions are in the text, and that it has the values that encoding/json reads.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,{"b":"c"}]}`, `{"a":1,"a":2}`, "[\"\xff\"]", `"\ud800"`, `["\ud83d\ude00"]`, `1e999`, `{} {}`, "\xef\xbb\xbf1", "[1,/**/]//", `{"a":1,/*`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		commented := strictjson.ParseWithComments(text, strictjson.Limits{})
		if len(commented.Text) != len(text) || (commented.Root == nil && len(commented.Errors) == 0) {
			t.Fatalf("%q: %+v", text, commented)
		}
		tree := strictjson.Parse(text, strictjson.Limits{})
		if err := strictjson.Check(text, strictjson.Limits{}); (err == nil) != (len(tree.Errors) == 0) {
			t.Fatalf("%q: %v, %v", text, err, tree.Errors)
		}
		for _, e := range tree.Errors {
			if line, column := strictjson.Position(text, e.Offset); e.Line != line || e.Column != column {
				t.Fatalf("%q: %+v, want %d:%d", text, e, line, column)
			}
		}
		if tree.Root == nil {
			return
		}
		if got := strings.TrimSpace(string(text)); string(text[tree.Root.Start:tree.Root.End]) != got {
			t.Fatalf("%q: %d-%d", text, tree.Root.Start, tree.Root.End)
		}
		for _, n := range tree.Root.Members {
			if found := tree.Root.Find(n.Value.Path(), nil); found != n.Value && len(n.Name) <= 64 {
				t.Fatalf("%q: %q is not found", text, n.Value.Path())
			}
		}
		if len(tree.Errors) > 0 {
			return
		}
		var a, b any
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(tree.Root.Canonical(), &b); err != nil || !cmp.Equal(a, b) {
			t.Fatalf("%q became %s", text, tree.Root.Canonical())
		}
	})
}

func TestIsString(t *testing.T) {
	for _, tt := range []struct {
		literal, s string
		want       bool
	}{
		{`"name"`, "name", true},
		{`"name"`, "nam", false},
		{`"nam"`, "name", false},
		{`"nama"`, "name", false},
		{`""`, "", true},
		{``, "name", false},
		{`"n\u0061me"`, "name", true},
		{`"n\u0061me"`, `n\u0061me`, false},
		{`"é"`, "é", true},
		{`"\u00e9"`, "é", true},
		{"\"a\xff\"", "a\ufffd", true},
		{"\"a\xff\"", "a\xff", false},
	} {
		if got := strictjson.IsString([]byte(tt.literal), tt.s); got != tt.want {
			t.Errorf("%s is %q: %v, want %v", tt.literal, tt.s, got, tt.want)
		}
	}
}
