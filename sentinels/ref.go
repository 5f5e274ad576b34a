package sentinels

import "encoding/json"

// A Lookup returns the value of a variable. The value must be valid JSON.
type Lookup func(name string) (value json.RawMessage, ok bool)

// Resolve replaces the references in every string of raw by their values. A
// string that is exactly one reference becomes the value itself, whatever its
// type. unknown are the references that nothing answers, as written; they stay
// in place. raw itself is returned where there is nothing to replace.
func Resolve(raw json.RawMessage, lookup Lookup) (out json.RawMessage, unknown []string, err error) {
	return raw, nil, nil
}

// ResolveAs is [Resolve] under a JSON Schema: where the schema wants a string,
// a value becomes its text.
func ResolveAs(raw, schema json.RawMessage, lookup Lookup) (out json.RawMessage, unknown []string, err error) {
	return raw, nil, nil
}

// ResolveText replaces the references in a text by the texts of their values.
func ResolveText(s string, lookup Lookup) (text string, unknown []string) { return s, nil }

// References returns the names of the variables that the strings of raw refer
// to, each once, in the order of their first use.
func References(raw json.RawMessage) []string { return nil }

// ExpressionReferences returns the names of the variables in the source of a
// condition.
func ExpressionReferences(source string) []string { return nil }

// Path returns the part of value that a path such as "a.b[0].c" leads to.
func Path(value json.RawMessage, path string) (json.RawMessage, bool) { return value, path == "" }

// Text returns the text of a value inside other text.
func Text(value json.RawMessage) string { return string(value) }

// ShellLine rewrites a shell line so that no value becomes part of its code.
func ShellLine(line string, lookup Lookup) (rewritten string, env map[string]string, problems []string) {
	return line, nil, nil
}
