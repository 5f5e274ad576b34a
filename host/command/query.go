package command

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Matches reports whether a document with this data fits the query's filter:
// every field of the filter has its value there.
func (q Query) Matches(data json.RawMessage) bool {
	if len(q.Filter) == 0 {
		return true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return false
	}
	for name, want := range q.Filter {
		have, ok := fields[name]
		if !ok || !SameJSON(have, want) {
			return false
		}
	}
	return true
}

// SameJSON compares values, not their writing. Numbers are the same if they
// are written the same: 1 and 1.0 differ, and no digit is lost.
func SameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeAny(a)
	y, errY := decodeAny(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeAny(text json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
