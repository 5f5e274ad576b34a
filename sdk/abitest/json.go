package abitest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/internal/jsondiff"
)

// encode writes a value without escapes that JSON does not need.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("abitest: %v in a value of the kit", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// must reads JSON in the tables of the kit.
func must(text string) any {
	v, err := jsondiff.Decode([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("abitest: %q: %v", text, err))
	}
	return v
}

// An extra reports whether an additional key is allowed.
type extra func(key string, value any) bool

// empty reports whether a value is null, false, 0, "", or a list or object of such
// values.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case json.Number:
		return jsondiff.SameNumber(v, "0")
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, item := range v {
			if !empty(item) {
				return false
			}
		}
		return true
	}
	return false
}
