package sentinel

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// visit calls fn for every object in a JSON value, an outer object before those in it.
func visit(value any, fn func(object map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		fn(v)
		for _, key := range slices.Sorted(maps.Keys(v)) { // always in the same order
			visit(v[key], fn)
		}
	case []any:
		for _, item := range v {
			visit(item, fn)
		}
	}
}

// reference returns the member of an object that refers to a stored sentinel, and the
// object that has it: {"$ref": ID}, wherever it is, or the sentinelId of a step that
// calls sentinel/start or sentinel/run. An id that the run computes is not a reference, nor is an id in
// other text, such as a prompt. holder is nil if there is none.
func reference(object map[string]any) (holder map[string]any, key string, id sentinels.ID) {
	holder, key = object, "$ref"
	if name := object["command"]; name == "sentinel/start" || name == "sentinel/run" {
		holder, _ = object["params"].(map[string]any)
		key = "sentinelId"
	} else if len(object) != 1 {
		return nil, "", ""
	}
	text, _ := holder[key].(string)
	if id = sentinels.ID(text); id == "" || sentinels.Slug(text) != id {
		return nil, "", ""
	}
	return holder, key, id
}

// EachObject calls fn with each object of the text of a definition, steps of any type and definitions in them among
// them, and with the sentinel that the object refers to, if there is one.
func EachObject(text json.RawMessage, fn func(object map[string]any, refers sentinels.ID)) error {
	def, err := decodeObject(text)
	if err != nil {
		return err
	}
	visit(def, func(object map[string]any) {
		_, _, id := reference(object)
		fn(object, id)
	})
	return nil
}

// decodeObject decodes a definition whose step types may be unknown here. Numbers stay
// as written.
func decodeObject(text json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("want an object")
	}
	return object, nil
}

// encodeObject returns compact JSON with < > and & as they are.
func encodeObject(object map[string]any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(object)
	return bytes.TrimSpace(b.Bytes()), err
}
