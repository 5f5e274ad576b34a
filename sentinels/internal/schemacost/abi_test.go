package schemacost

import (
	"fmt"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestSchemaLimitTable compares the limits of schemas with clause A8.4.
func TestSchemaLimitTable(t *testing.T) {
	abidoc.Want(t, "A8.4", map[string]string{
		"step types of a plugin":                                                 abidoc.Count(MaxTypes),
		"arrays and objects within each other, in one schema":                    abidoc.Count(schemaText.Depth),
		"objects, arrays and booleans":                                           fmt.Sprintf("%s of one schema, %s of a plugin", abidoc.Count(maxParts), abidoc.Count(MaxAllParts)),
		"properties of one schema, at all levels; aliases, fields to infer from": abidoc.Count(MaxProperties) + " each",
		"references ($ref) of one schema":                                        abidoc.Count(maxReferences) + ", each to a part of the same schema: #/$defs/NAME; $id (but at the root), $anchor and $dynamicRef are refused",
		"patterns of one schema":                                                 fmt.Sprintf("%d, of %s each; %s instructions of one when compiled, %s of all", maxPatterns, abidoc.Bytes(maxPattern), abidoc.Count(maxProgram), abidoc.Count(maxPrograms)),
		"a key, a text":                                                          fmt.Sprintf("%s, %s", abidoc.Bytes(maxSchemaKey), abidoc.Bytes(schemaText.StringBytes)),
	})
}
