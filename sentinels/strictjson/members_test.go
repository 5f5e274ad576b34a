package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

func TestMembers(t *testing.T) {
	text := ` {"b": 1, "A" : null, "": {"x": [2]}, "\u0061": "\""} `
	got, err := strictjson.Members([]byte(text), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []strictjson.Member{
		{Key: "b", Value: json.RawMessage("1"), Offset: 2, ValueOffset: 7},
		{Key: "A", Value: json.RawMessage("null"), Offset: 10, ValueOffset: 16},
		{Key: "", Value: json.RawMessage(`{"x": [2]}`), Offset: 22, ValueOffset: 26},
		{Key: "a", Value: json.RawMessage(`"\""`), Offset: 38, ValueOffset: 48},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		`[]`:                    "line 1, column 1: want an object, got an array",
		"\n null":               "line 2, column 2: want an object, got null",
		`{"a": 1, "\u0061": 2}`: `line 1, column 10: a: duplicate key "a", first at line 1, column 2`,
		`{"a": 1,}`:             "line 1, column 8: a: invalid character ',' at start of value",
	} {
		if _, err := strictjson.Members([]byte(text), strictjson.Limits{}); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestAny(t *testing.T) {
	v, err := strictjson.Any([]byte(`{"n": 12345678901234567890.5, "l": [null, true]}`), strictjson.Limits{})
	want := map[string]any{"n": json.Number("12345678901234567890.5"), "l": []any{nil, true}}
	if diff := cmp.Diff(want, v); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := strictjson.Any([]byte(`{"n": 1, "n": 2}`), strictjson.Limits{}); err == nil {
		t.Error("a duplicate key is accepted")
	}
}

func TestDecodeOpen(t *testing.T) {
	var v struct{ Name string }
	if err := strictjson.DecodeOpen([]byte(`{"Name": "x", "name": "y", "more": [1]}`), &v, strictjson.Limits{}); err != nil || v.Name != "x" {
		t.Errorf("%+v %v", v, err)
	}
	err := strictjson.DecodeOpen([]byte(`{"more": [{"a": 1, "a": 2}]}`), &v, strictjson.Limits{})
	if err == nil || !strings.Contains(err.Error(), `more[0].a: duplicate key "a"`) {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	text := []byte("{\n \"steps\": [{\"id\": \"a\"},\n  {\"x y\": -12, \"then\": {}}],\n \"name\": null\n}")
	for _, c := range []struct {
		path, found  string
		line, column int
	}{
		{"", "", 1, 1},
		{"name", "name", 4, 10},
		{"nam", "", 1, 1},
		{"steps", "steps", 2, 11},
		{"steps[0].id", "steps[0].id", 2, 19},
		{`steps[1]["x y"]`, `steps[1]["x y"]`, 3, 11},
		{"steps[1].then[2].command", "steps[1].then", 3, 24},
		{"steps[7].id", "steps", 2, 11},
	} {
		found, line, column := strictjson.Find(text, c.path)
		if found != c.found || line != c.line || column != c.column {
			t.Errorf("%q: found %q at %d:%d, want %q at %d:%d", c.path, found, line, column, c.found, c.line, c.column)
		}
	}
	for _, text := range []string{"", "nope", `{"a"`, `{"a": [1, }`} { // never a panic
		strictjson.Find([]byte(text), "a[1].b")
	}
}

// The place of an error is found in one pass: with long keys around many tokens,
// the path of each token would take gigabytes.
func TestErrorPlaceIsLinear(t *testing.T) {
	key := `"` + strings.Repeat("k", 8<<10) + `"`
	const depth = 30
	inner := strings.Repeat("1,", 200_000)
	text := strings.Repeat("{"+key+":", depth) + `{"list":[` + inner + `1],"a":1,"a":2}` + strings.Repeat("}", depth)
	allocs := testing.AllocsPerRun(1, func() {
		err := strictjson.Check([]byte(text), strictjson.Limits{})
		want := fmt.Sprintf(`duplicate key "a", first at line 1, column %d`, strings.Index(text, `"a"`)+1)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Fatal(err)
		}
	})
	if allocs > 10_000 {
		t.Errorf("%v allocations", allocs)
	}
}
