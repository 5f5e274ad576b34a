package schemacost_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// doubling returns n definitions, each of which refers to the next one twice.
func doubling(n int) string {
	defs := []string{fmt.Sprintf(`"d%d":{"type":"string"}`, n)}
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return field(`{"$ref":"#/$defs/d0"}`, defs...)
}

// The cost of a check is limited, whatever the value and the schema are.
func TestCheckLimits(t *testing.T) {
	wide := field(`{"items":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 490) + `{"type":"null"}]}}`)
	pattern := field(`{"anyOf":[{"pattern":"a[a-z]{1,900}$"}` + strings.Repeat(`,{"pattern":"b[a-z]{1,900}$"}`, 9) + `]}`)
	ambiguous := field(`{"$ref":"#/$defs/t"}`, `"t":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/t"}},"required":["y"]},{"properties":{"x":{"$ref":"#/$defs/t"}}}]}`)
	tree := field(`{"$ref":"#/$defs/t"}`, `"t":{"type":"object","properties":{"left":{"$ref":"#/$defs/t"},"right":{"$ref":"#/$defs/t"}}}`)
	for name, c := range map[string]struct{ schema, value, want string }{
		"values":          {wide, `[` + strings.Repeat(`1,`, 150_000) + `1]`, "checking 150003 values against the schema takes more than 500000 evaluations"},
		"doubling":        {doubling(30), `"a"`, "more than 500000 evaluations"},
		"doubling within": {doubling(8), `"a"`, ""},
		"recursion":       {ambiguous, nested(40, `{"x":`, `1`, `}`), "more than 500000 evaluations"},
		"circle":          {field(`{"$ref":"#/$defs/s"}`, `"s":{"anyOf":[{"$ref":"#/$defs/s"}]}`), `1`, "more than 500000 evaluations"},
		"tree":            {tree, nested(40, `{"left":{},"right":`, `{}`, `}`), ""},
		"values within":   {wide, `[` + strings.Repeat(`null,`, 100) + `null]`, ""},
		"text":            {pattern, `"` + strings.Repeat("a", 60_000) + `"`, "60001 bytes of text are too many"},
		"text within":     {pattern, `"aaaa"`, ""},
		"pattern":         {field(`{"format":"regex"}`), `"(x{0,30}y{0,30}){0,30}"`, "regex"},
		"pattern within":  {field(`{"format":"regex"}`), `"^x{0,30}$"`, ""},
		"large and plain": {field(`{}`), `[` + strings.Repeat(`1,`, 150_000) + `1]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{Type: "a", Fields: json.RawMessage(c.schema)}})
			if err != nil {
				t.Fatal(err)
			}
			spec, _ := set.Lookup("a")
			err = spec.CheckFields(json.RawMessage(`{"a":` + c.value + `}`))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("CheckFields: %v, want %q", err, c.want)
			}
			_, problems := sentinels.Decode([]byte(`{"name":"a","steps":[{"type":"a","a":`+c.value+`}]}`), sentinels.DecodeOptions{Types: set})
			if said := fmt.Sprint(problems); c.want == "" && len(problems) > 0 || !strings.Contains(said, c.want) {
				t.Errorf("Decode: %.300s, want %q", said, c.want)
			}
		})
	}
}

// The number and the length of the problems of one step are limited.
func TestProblemsOfAStepAreBounded(t *testing.T) {
	const most, text = 100, 1 << 10
	var numbers, keys strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&numbers, ",%d", i)
		fmt.Fprintf(&keys, `,"key%d":1`, i)
	}
	long := strings.Repeat("é", 20_000)
	for name, c := range map[string]struct {
		schema, fields string
		want           int
	}{
		"items":        {`{"type":"object","properties":{"a":{"items":{"type":"string"}}}}`, `{"a":[` + numbers.String()[1:] + `]}`, most + 1},
		"alternatives": {`{"type":"object","properties":{"a":{"items":{"anyOf":[{"const":-1},{"enum":[-2]},{"type":"integer","minimum":9999999}]}}}}`, `{"a":[` + numbers.String()[1:] + `]}`, most + 1},
		"unknown keys": {`{"type":"object","properties":{"a":{"additionalProperties":false}}}`, `{"a":{` + keys.String()[1:] + `}}`, most + 1},
		"a long text":  {`{"type":"object","properties":{"a":{"enum":["x"]}}}`, `{"a":"` + long + `"}`, 1},
		"a long key":   {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"` + long + `":1}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{Type: "a", Fields: json.RawMessage(c.schema)}})
			if err != nil {
				t.Fatal(err)
			}
			spec, _ := set.Lookup("a")
			resolved := spec.CheckFields(json.RawMessage(c.fields))
			_, written := sentinels.Decode([]byte(`{"id":"x","name":"x","steps":[{"type":"a",`+c.fields[1:]+`]}`), sentinels.DecodeOptions{Types: set})
			var found sentinels.Problems
			if !errors.As(resolved, &found) {
				t.Fatalf("the fields were accepted: %v", resolved)
			}
			for where, list := range map[string]sentinels.Problems{"when resolved": found, "in a definition": written} {
				if len(list) != c.want {
					t.Errorf("%s: %d problems, want %d", where, len(list), c.want)
				}
				for _, p := range list {
					if len(p.Message) > text+100 || len(p.Path) > text+100 || len(p.Hint) > text+100 || !utf8.ValidString(p.Message+p.Path) {
						t.Errorf("%s: a problem of %d, %d and %d bytes: %.100s", where, len(p.Message), len(p.Path), len(p.Hint), p.Message)
					}
				}
				if said := list.Error(); c.want > most && strings.Count(said, "more than 100 problems") != 1 {
					t.Errorf("%s: no problem says that there are more: %.200s", where, said)
				}
			}
		})
	}
}
