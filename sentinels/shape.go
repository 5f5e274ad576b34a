package sentinels

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Shape describes the values of a JSON Schema in a few words, such as
// "{exitCode, lines: [{class, text}]}": the names of fields, down to the given depth of
// objects. A field that may be missing has a question mark if the schema says which are
// required. "" is any value. Of an object with many fields those that may be missing are
// left out.
func Shape(schema json.RawMessage, depth int) string {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	return shape(s, s, depth)
}

// maxShape is the largest number of fields that are listed with the optional ones.
const maxShape = 14

func shape(root, s map[string]any, depth int) string {
	for range 8 { // a chain of references
		ref, _ := s["$ref"].(string)
		target, _ := root["$defs"].(map[string]any)
		next, _ := target[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		if next == nil {
			break
		}
		s = next
	}
	if items, ok := s["items"].(map[string]any); ok {
		if inner := shape(root, items, depth); inner != "" {
			return "[" + inner + "]"
		}
		return ""
	}
	properties, _ := s["properties"].(map[string]any)
	if len(properties) == 0 || depth == 0 {
		return ""
	}
	required, listed := s["required"].([]any)
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := name
		if listed && !slices.Contains(required, any(name)) {
			field += "?"
		}
		inner, _ := properties[name].(map[string]any)
		if text := shape(root, inner, depth-1); text != "" {
			field += ": " + text
		}
		fields = append(fields, field)
	}
	all := len(fields)
	if all > maxShape {
		fields = slices.DeleteFunc(fields, func(field string) bool { return strings.Contains(strings.SplitN(field, ":", 2)[0], "?") })
	}
	text := "{" + strings.Join(fields, ", ") + "}"
	if len(fields) < all {
		return strings.TrimSuffix(text, "}") + ", …}"
	}
	if closed, given := s["additionalProperties"].(bool); given && !closed {
		return text
	}
	if _, none := s["additionalProperties"].(map[string]any); none {
		return text
	}
	return strings.TrimSuffix(text, "}") + ", …}"
}
