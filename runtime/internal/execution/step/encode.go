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
	v = journal.Compact(v)
	b.Grow(len(v) + 1)
	for len(v) > 0 {
		n := min(len(v), escapeBlock)
		for n < len(v) && v[n]&0xc0 == 0x80 { // within a character
			n++
		}
		if block := v[:n]; hasHTML(block) {
			json.HTMLEscape(b, block)
		} else {
			b.Write(block)
		}
		v = v[n:]
	}
}

// escapeBlock is the size in bytes of the parts of a value in which [appendValue] looks for what it has to escape: few
// parts of a large value have any, and a copy is many times as fast.
const escapeBlock = 4 << 10

// hasHTML reports whether [json.Marshal] would escape a byte of a text.
func hasHTML(text []byte) bool {
	return bytes.IndexByte(text, '<') >= 0 || bytes.IndexByte(text, '>') >= 0 || bytes.IndexByte(text, '&') >= 0 || bytes.Contains(text, separators)
}

// separators is the beginning of the separators of lines and of paragraphs, which [json.Marshal] escapes.
var separators = []byte("\xe2\x80")

// EncodeValues returns an object of valid JSON values, as [json.Marshal].
func EncodeValues(values map[string]json.RawMessage) (json.RawMessage, error) {
	return joinValues(values, func(b *bytes.Buffer, _ string, v json.RawMessage) { appendValue(b, v) })
}

// joinValues is EncodeValues with values as add appends them.
func joinValues(values map[string]json.RawMessage, add func(b *bytes.Buffer, name string, v json.RawMessage)) (json.RawMessage, error) {
	if values == nil {
		return json.RawMessage("null"), nil
	}
	size := 2
	for name, v := range values {
		size += len(name) + len(v) + len(`"":{"value":},`)
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
		add(&b, name, values[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
