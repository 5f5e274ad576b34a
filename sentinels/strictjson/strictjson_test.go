package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

func TestCheck(t *testing.T) {
	small := strictjson.Limits{Bytes: 200, Depth: 3, Keys: 4, StringBytes: 20}
	for _, c := range []struct{ text, want string }{
		{`{"a": [1, {"b": "x\"y"}]}`, ""},
		{` null `, ""},
		{`[1e308, -0, 0.1]`, ""},
		{"", "line 1, column 1: the text ends before the value does"},
		{`{"a": 1`, "line 1, column 8: a: the text ends before the value does"},
		{"{\n \"a\": 1,\n \"é\": 2, \"a\": 3}", `line 3, column 10: a: duplicate key "a", first at line 2, column 2`},
		{`{"a": 1, "\u0061": 3}`, `line 1, column 10: a: duplicate key "a", first at line 1, column 2`},
		{`[{"x": {"a": 1, "a": 3}}]`, `line 1, column 17: [0].x.a: duplicate key "a", first at line 1, column 9`},
		{`{"A": 1, "a": 3}`, ""},
		{"{\"a\": \"\xff\"}", `line 1, column 8: a: text that is not UTF-8: an invalid byte or half of a surrogate pair`},
		{`{"a": "\ud800"}`, `line 1, column 8: a: text that is not UTF-8: an invalid byte or half of a surrogate pair`},
		{`{"a": "\ud83d\ude00"}`, ""},
		{"\xef\xbb\xbf{}", "line 1, column 1: the text starts with a byte order mark"},
		{`{} {}`, "line 1, column 4: text after the JSON value"},
		{`{} x`, "line 1, column 4: text after the JSON value"},
		{`[1e400]`, "line 1, column 2: [0]: the number 1e400 is out of range"},
		{`{"x": 1e-999999999}`, "line 1, column 7: x: the number 1e-999999999 is out of range"},
		{`{"x": [[[1]]]}`, "line 1, column 9: x[0][0]: arrays and objects are nested more than 3 deep"},
		{`[{"a":1,"b":2,"c":3,"d":4,"e":5}]`, "line 1, column 27: [0].e: there are more than 4 keys"},
		{`["` + strings.Repeat("a", 21) + `"]`, "line 1, column 2: [0]: a string has 21 bytes, the limit is 20"},
		{`["` + strings.Repeat("a", 20) + `"]`, ""},
		{strings.Repeat(" ", 199) + "12", "line 1, column 1: the text has 201 bytes, the limit is 200"},
		{`{"my key": {"b": nul}}`, `line 1, column 21: ["my key"].b: invalid character '}' in literal null (expecting 'l')`},
	} {
		err := strictjson.Check([]byte(c.text), small)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		`1`: 1, `[1,2,3]`: 4, `{"a":1,"b":[true,null],"c":"x,{[y"}`: 6, `[[],{},[]]`: 4, `[{},{"a":[{}]}]`: 5, ` [ 1 , "\"," ] `: 3,
	} {
		for _, limit := range []int{want - 1, want} {
			limits := strictjson.Limits{Values: limit}
			refused := limit < want
			if limit > 0 {
				if err := strictjson.Check([]byte(text), limits); (err != nil) != refused {
					t.Errorf("Check %s with the limit %d: %v", text, limit, err)
				}
				if tree := strictjson.Parse([]byte(text), limits); (len(tree.Errors) > 0) != refused {
					t.Errorf("Parse %s with the limit %d: %v", text, limit, tree.Errors)
				}
			}
			if refused && limit > 0 && !strictjson.MayExceed([]byte(text), limit) {
				t.Errorf("MayExceed(%s, %d) is false", text, limit)
			}
		}
	}
}

// span is a type with a text form of its own.
type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration", text)
	}
	*s = span(d)
	return nil
}

func TestDecode(t *testing.T) {
	type inner struct {
		Count int             `json:"count"`
		Raw   json.RawMessage `json:"raw"`
	}
	type outer struct {
		Name  string         `json:"name"`
		Inner []inner        `json:"inner"`
		Any   map[string]any `json:"any"`
		On    *bool          `json:"on,omitempty"`
		Wait  span           `json:"wait"`
		When  time.Time      `json:"when"`
	}
	var v outer
	if err := strictjson.Decode([]byte(`{"name": "x", "inner": [{"count": 2, "raw": {"Z": [1]}}], "any": {"k": null}}`), &v, strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	if v.Name != "x" || v.Inner[0].Count != 2 || string(v.Inner[0].Raw) != `{"Z": [1]}` {
		t.Errorf("%+v", v)
	}
	for _, c := range []struct{ text, want string }{
		{`{"NAME": "x"}`, `line 1, column 2: NAME: unknown key "NAME"`},
		{`{"inner": [{"count": "2"}]}`, `line 1, column 22: inner[0].count: want an integer, got a string`},
		{`{"inner": [{"count": 2.5}]}`, `line 1, column 22: inner[0].count: want an integer in range, got 2.5`},
		{`{"inner": [{"count": 99999999999999999999}]}`, `line 1, column 22: inner[0].count: want an integer in range, got 99999999999999999999`},
		{`{"inner": {"count": 2}}`, `line 1, column 11: inner: want an array, got an object`},
		{`{"wait": "soon"}`, `line 1, column 10: wait: "soon" is not a duration`},
		{`{"wait": 5}`, `line 1, column 10: wait: want a string, got a number`},
		{`{"when": "today"}`, `line 1, column 10: when: parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006"`},
		{`{"on": 0}`, `line 1, column 8: on: want a boolean, got a number`},
		{`[]`, `line 1, column 1: want an object, got an array`},
		{`{"name": "a", "name": "b"}`, `line 1, column 15: name: duplicate key "name", first at line 1, column 2`},
	} {
		var v outer
		if err := strictjson.Decode([]byte(c.text), &v, strictjson.Limits{}); err == nil || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// FuzzCheck asserts that what passes is valid for encoding/json and decodes to
// the same value by both, and that an error has a place within the text.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,{"b":"c"}]}`, `{"a":1,"a":2}`, "[\"\xff\"]", `"\ud800"`, `1e999`, `{} {}`,
		"1e-500", strings.Repeat("9", 310), "\xef\xbb\xbf1", `"\u0000\/"`, strings.Repeat("[", 65) + strings.Repeat("]", 65)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := strictjson.Check(text, strictjson.Limits{})
		if slow := strictjson.CheckByToken(text, strictjson.Limits{}); (slow == nil) != (err == nil) {
			t.Fatalf("%q: %v by token, %v", text, slow, err)
		}
		var problem *strictjson.Error
		if err != nil {
			if !errors.As(err, &problem) || problem.Line < 1 || problem.Column < 1 || problem.Offset > len(text) {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		var a, b any
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatalf("%q passes, encoding/json: %v", text, err)
		}
		if err := strictjson.Decode(text, &b, strictjson.Limits{}); err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q: %v, %v and %v", text, err, a, b)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	text := []byte(`{"steps":[` + strings.Repeat(`{"type":"shell","command":"go test ./...","n":12.5},`, 200) + `null]}`)
	b.Run("strictjson", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if err := strictjson.Check(text, strictjson.Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if !json.Valid(text) {
				b.Fatal()
			}
		}
	})
}

// TestDecodeForeign: names are exact and not given twice, as in [strictjson.Decode]; unknown
// ones are ignored, and text that is not UTF-8 is replaced.
func TestDecodeForeign(t *testing.T) {
	type reply struct {
		Status string          `json:"status"`
		Data   json.RawMessage `json:"data"`
	}
	for _, c := range []struct{ text, want, err string }{
		{`{"status":"a","ſtatus":"b","Status":"c","more":1}`, "a", ""},
		{`{"Status":"c"}`, "", ""},
		{`{"status":"a\ud83d"}`, "a\ufffd", ""},
		{"{\"status\":\"a\xf0\x9f\"}", "a\ufffd\ufffd", ""},
		{`{"status":"a","status":"b"}`, "", `duplicate key "status"`},
		{`{"data":{"a":1,"a":2}}`, "", `duplicate key "a"`},
		{`{"status":1}`, "", "status: want a string, got a number"},
		{`{"status":"a"} {}`, "", "line 1, column 16: invalid character"},
	} {
		var r reply
		err := strictjson.DecodeForeign([]byte(c.text), &r)
		if c.err == "" && (err != nil || r.Status != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %q, %v; want %q, %q", c.text, r.Status, err, c.want, c.err)
		}
	}
}
