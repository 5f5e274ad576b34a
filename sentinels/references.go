package sentinels

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// VisitObjects calls fn for every object in a JSON value, an outer object before those in it.
func VisitObjects(value any, fn func(object map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		fn(v)
		for _, key := range slices.Sorted(maps.Keys(v)) { // always in the same order
			VisitObjects(v[key], fn)
		}
	case []any:
		for _, item := range v {
			VisitObjects(item, fn)
		}
	}
}

// Reference returns the member of an object that refers to a stored sentinel, and the
// object that has it: {"$ref": ID}, wherever it is, or the sentinelId of a step that
// calls sentinel/start or sentinel/run. An id that the run computes is not a reference, nor is an id in
// other text, such as a prompt. holder is nil if there is none.
func Reference(object map[string]any) (holder map[string]any, key string, id ID) {
	holder, key = object, "$ref"
	if name := object["command"]; name == "sentinel/start" || name == "sentinel/run" {
		holder, _ = object["params"].(map[string]any)
		key = "sentinelId"
	} else if len(object) != 1 {
		return nil, "", ""
	}
	text, _ := holder[key].(string)
	if id = ID(text); id == "" || Slug(text) != id {
		return nil, "", ""
	}
	return holder, key, id
}

// EachObject calls fn with each object of the text of a definition, steps of any type and definitions in them among
// them, and with the sentinel that the object refers to, if there is one.
func EachObject(text json.RawMessage, fn func(object map[string]any, refers ID)) error {
	def, err := DecodeObject(text)
	if err != nil {
		return err
	}
	VisitObjects(def, func(object map[string]any) {
		_, _, id := Reference(object)
		fn(object, id)
	})
	return nil
}

// DecodeObject decodes a definition whose step types may be unknown here. Numbers stay
// as written.
func DecodeObject(text json.RawMessage) (map[string]any, error) {
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
