package verify

import (
	"encoding/json"
	"maps"
	"slices"
)

// environment are the variables that checks get.
type environment map[string]string

// expand replaces {{NAME}} in a text by the variable NAME, and returns the names that
// there are none of.
func (e environment) expand(text string) (string, []string) {
	var missing []string
	out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := placeholder.FindStringSubmatch(found)[1]
		value, ok := e[name]
		if !ok {
			missing = append(missing, name)
			return found
		}
		return value
	})
	return out, missing
}

// expandJSON replaces {{NAME}} in the strings of a JSON value.
func (e environment) expandJSON(text json.RawMessage) (json.RawMessage, []string) {
	if len(text) == 0 || !placeholder.MatchString(string(text)) {
		return text, nil
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return text, nil // reported where it is read
	}
	var missing []string
	var walk func(any) any
	walk = func(value any) any {
		switch value := value.(type) {
		case string:
			out, more := e.expand(value)
			missing = append(missing, more...)
			return out
		case []any:
			for i := range value {
				value[i] = walk(value[i])
			}
		case map[string]any:
			for _, name := range slices.Collect(maps.Keys(value)) {
				value[name] = walk(value[name])
			}
		}
		return value
	}
	out, err := json.Marshal(walk(value))
	if err != nil {
		return text, missing
	}
	return out, missing
}
