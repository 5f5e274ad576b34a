package data

import (
	"bytes"
	"encoding/json"
	"errors"
)

// merge lays patch over the object in text, as RFC 7396 has it: null removes a
// field, objects merge, everything else replaces.
func merge(text json.RawMessage, patch map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	fields, ok := object(text)
	if !ok {
		return nil, errors.New("is no object to merge into")
	}
	for name, value := range patch {
		if isNull(value) {
			delete(fields, name)
			continue
		}
		inner, ok := object(value)
		if !ok {
			fields[name] = value
			continue
		}
		under := fields[name]
		if _, ok := object(under); !ok {
			under = json.RawMessage("{}") // the patch replaces a value that is not an object, and its nulls are removed
		}
		merged, err := merge(under, inner)
		if err != nil {
			return nil, err
		}
		if fields[name], err = json.Marshal(merged); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

func isNull(text json.RawMessage) bool { return string(bytes.TrimSpace(text)) == "null" }

// object decodes one level of an object.
func object(text json.RawMessage) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return nil, false
	}
	return fields, true
}
