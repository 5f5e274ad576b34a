package step

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// appendValue appends a valid JSON value with the bytes that [json.Marshal] writes for a
// [json.RawMessage]. Marshal checks the value again and copies it while its buffer grows, which
// is most of its time for a large one. Values were checked when they became values.
func appendValue(b *bytes.Buffer, v json.RawMessage) {
	if v == nil {
		b.WriteString("null")
		return
	}
	b.Grow(len(v) + 1)
	json.HTMLEscape(b, journal.Compact(v))
}

// encodeValues returns an object of valid JSON values, as [json.Marshal].
func encodeValues(values map[string]json.RawMessage) (json.RawMessage, error) {
	if values == nil {
		return json.RawMessage("null"), nil
	}
	size := 2
	for name, v := range values {
		size += len(name) + len(v) + len(`"":,`)
	}
	var b bytes.Buffer
	b.Grow(size)
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		appendValue(&b, values[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
