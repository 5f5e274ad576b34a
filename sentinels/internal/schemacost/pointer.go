package schemacost

import (
	"strconv"
	"strings"
)

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// Pointer returns the target of a reference such as "#/$defs/rule".
func Pointer(root any, ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' { // another document, or an anchor
		return nil, false
	}
	for _, token := range strings.Split(path, "/")[1:] {
		token = pointerEscapes.Replace(token)
		switch at := root.(type) {
		case map[string]any:
			if root, ok = at[token]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			root = at[i]
		default:
			return nil, false
		}
	}
	return root, true
}

// Deref returns a schema, or the target of the references that it is.
func Deref(root, schema any) (map[string]any, bool) {
	for range 8 { // longer chains are treated as cycles
		s, ok := schema.(map[string]any)
		if !ok {
			return nil, false
		}
		ref, ok := s["$ref"].(string)
		if !ok {
			return s, true
		}
		if schema, ok = Pointer(root, ref); !ok {
			return nil, false
		}
	}
	return nil, false
}
