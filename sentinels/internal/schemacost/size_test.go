package schemacost_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// properties returns a schema of n equal fields. In inner, # is the number of the
// field.
func properties(n int, inner string) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"p%d":%s`, i, strings.ReplaceAll(inner, "#", fmt.Sprint(i))))
	}
	return `{"type":"object","properties":{` + strings.Join(members, ",") + `}}`
}

// field returns a schema of one field, a, with definitions.
func field(schema string, defs ...string) string {
	return `{"type":"object","properties":{"a":` + schema + `},"$defs":{` + strings.Join(defs, ",") + `}}`
}

func nested(n int, open, inner, shut string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// Schemas that would take minutes to compile, gigabytes of memory, or hours to validate
// one value, are refused at once. Those just within the limits are accepted.
func TestSchemaLimits(t *testing.T) {
	for name, c := range map[string]struct{ fields, want string }{
		"depth":                      {field(nested(8_000, `{"not":`, `{}`, `}`)), "nested more than 64 deep"},
		"depth within":               {field(nested(60, `{"not":`, `{}`, `}`)), ""},
		"nested properties":          {field(nested(3_000, `{"properties":{"a":`, `{}`, `}}`)), "nested more than 64 deep"},
		"flat properties":            {properties(9_000, `{"type":"string"}`), "more than 10000 keys"},
		"properties":                 {properties(501, `{}`), "501 properties, the limit is 500"},
		"properties within":          {properties(500, `{}`), ""},
		"alternatives":               {field(`{"anyOf":[` + strings.Repeat(`{},`, 1_000) + `{}]}`), "objects, arrays and booleans, the limit is 1000"},
		"alternatives true":          {field(`{"anyOf":[` + strings.Repeat(`true,`, 1_000) + `true]}`), "objects, arrays and booleans, the limit is 1000"},
		"patterns of 190 KB":         {properties(3_000, `{"pattern":"(x{0,30}y{0,30}){0,30}"}`), "instructions, the limit is 2000"},
		"patterns":                   {properties(101, `{"pattern":"a#"}`), "101 patterns, the limit is 100"},
		"patterns within":            {properties(100, `{"pattern":"^[a-z0-9#]{1,63}$"}`), ""},
		"pattern of properties":      {field(`{"patternProperties":{"(x{0,30}y{0,30}){0,30}":{}}}`), "instructions, the limit is 2000"},
		"long pattern":               {field(`{"pattern":"` + strings.Repeat("a", 1_025) + `"}`), "1025 bytes, the limit is 1024"},
		"large pattern":              {field(`{"pattern":"[a-z]{1,1000}[a-z]{1,1000}"}`), "instructions, the limit is 2000"},
		"large pattern within":       {field(`{"pattern":"[a-z]{1,900}"}`), ""},
		"large class":                {field(`{"pattern":"` + strings.Repeat(`\\pL`, 100) + `"}`), "instructions, the limit is 2000"},
		"many large patterns":        {properties(30, `{"pattern":"#[a-z]{1,900}"}`), "instructions in its patterns, the limit is 20000"},
		"no schema":                  {field(`{"type":5}`), `the schema violates the metaschema at "/properties/a/type": got number`},
		"pattern that does not work": {field(`{"pattern":"("}`), "not valid regex"},
		"pattern in unused part":     {field(`{}`, `"x":{"pattern":"(x{0,30}y{0,30}){0,30}"}`), "instructions, the limit is 2000"},
		"references":                 {properties(201, `{"$ref":"#/properties/x"}`), "201 references, the limit is 200"},
		"long key":                   {field(`{"properties":{"` + strings.Repeat("k", 65) + `":{}}}`), "65 bytes, the limit is 64"},
		"long text":                  {field(`{"description":"` + strings.Repeat("d", 20_000) + `"}`), "a string has 20000 bytes"},
		"key twice":                  {field(`{"type":"string","type":"number"}`), `duplicate key "type"`},
		"itself":                     {field(`{"$ref":"#/$defs/t"}`, `"t":{"properties":{"x":{"$ref":"#/$defs/t"}}}`), ""},
		"the whole":                  {field(`{"properties":{"b":{"$ref":"#"}}}`), ""},
		"nowhere":                    {field(`{"$ref":"#/$defs/none"}`), "only references within it are supported"},
		"nowhere in unused part":     {field(`{}`, `"x":{"items":{"$ref":"#/$defs/none"}}`), "only references within it are supported"},
		"anchor":                     {field(`{"$ref":"#t"}`), "only references within it are supported"},
		"anchor of a part":           {field(`{"$anchor":"t"}`), `"$anchor" is not supported`},
		"dynamic reference":          {field(`{"$dynamicRef":"#t"}`), `"$dynamicRef" is not supported`},
		"identifier":                 {field(`{"$id":"https://example.com/a"}`), `"$id" is not supported`},
		"identifier of the whole":    {`{"$id":"https://example.com/a","type":"object"}`, ""},
		"field of that name":         {field(`{"properties":{"$id":{},"id":{},"pattern":{"type":"string"},"$ref":{}}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			specs := []sentinels.TypeSpec{{Type: "a", Fields: json.RawMessage(c.fields)}}
			set, err := sentinels.NewTypeSet(specs)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case err == nil && set == nil:
				t.Error("no type set and no error")
			}
			if err != nil && (len(err.Error()) > 1_000 || strings.Contains(err.Error(), "\n")) {
				t.Errorf("the error has %d bytes, or more than one line: %q", len(err.Error()), err)
			}
		})
	}
}

// The limits are for all types of one plugin together.
func TestTypesOfOnePlugin(t *testing.T) {
	types := func(n int, plugin func(i int) string, fields string) (specs []sentinels.TypeSpec) {
		for i := range n {
			specs = append(specs, sentinels.TypeSpec{Type: sentinels.StepType(fmt.Sprint("t", i)), Plugin: plugin(i), Fields: json.RawMessage(fields)})
		}
		return specs
	}
	one := func(int) string { return "one" }
	many := func(i int) string { return fmt.Sprint("p", i/60) }
	large := properties(450, `{}`)
	for want, specs := range map[string][]sentinels.TypeSpec{
		`plugin "one": more than 64 step types`:                                   types(65, one, `{"type":"object"}`),
		`plugin "one": its schemas have more than 5000 objects, arrays and boole`: types(12, one, large),
	} {
		if err := sentinels.CheckTypes(specs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	aliases := map[string]string{}
	for i := range 501 {
		aliases[fmt.Sprint("x", i)] = "a"
	}
	err := sentinels.CheckTypes([]sentinels.TypeSpec{{Type: "a", Fields: json.RawMessage(field(`{}`)), Aliases: aliases}})
	if err == nil || !strings.Contains(err.Error(), "501 aliases") {
		t.Errorf("error %v, want one about 501 aliases", err)
	}
	if _, err := sentinels.NewTypeSet(types(120, many, `{"type":"object"}`)); err != nil {
		t.Error(err)
	}
	if err := sentinels.CheckTypes(types(64, one, `{"type":"object"}`)); err != nil {
		t.Error(err)
	}
}
