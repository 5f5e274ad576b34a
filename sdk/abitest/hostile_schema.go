package abitest

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// schemas are guests with a small manifest whose schema takes minutes or gigabytes to
// compile.
func schemas() []HostileGuest {
	guest := func(name, behavior, words, fields string) HostileGuest {
		return HostileGuest{Name: name, Clause: "A8.4", Behavior: behavior, At: AtLoad, Code: abi.Plugin, Words: words,
			Module: func() []byte { return []byte(straight(manifest(name, fields), "", "")) }}
	}
	within := func(n int, open, shut string) string {
		return `{"type":"object","properties":{"a":` + strings.Repeat(open, n) + `{}` + strings.Repeat(shut, n) + `}}`
	}
	properties := func(n int, schema string) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"p%d":%s`, i, schema))
		}
		return `{"type":"object","properties":{` + strings.Join(members, ",") + `}}`
	}
	return []HostileGuest{
		guest("schema_deep", "has a schema with 8,000 nested schemas", "64 deep", within(8_000, `{"not":`, `}`)),
		guest("schema_nested", "has a schema with 3,000 nested properties", "64 deep", within(3_000, `{"properties":{"a":`, `}}`)),
		guest("schema_wide", "has a schema of 9,000 properties", "keys", properties(9_000, `{"type":"string"}`)),
		guest("schema_patterns", "has 3,000 patterns that repeat their parts", "instructions", properties(3_000, `{"pattern":"(x{0,30}y{0,30}){0,30}"}`)),
		guest("schema_alternatives", "has a schema of 20,000 alternatives", "objects, arrays and booleans", `{"type":"object","anyOf":[`+strings.Repeat(`true,`, 20_000)+`true]}`),
		guest("schema_mark", "marks a field with an unknown mark", "unknown mark", `{"type":"object","properties":{"a":{"x-sentinel":"magic"}}}`),
		guest("schema_none", "has an invalid schema", "violates the metaschema", `{"type":"object","properties":{"a":{"type":5}}}`),
	}
}
