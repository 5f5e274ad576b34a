package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// JSON returns the JSON text without the registered secrets and still valid:
// strings and keys are redacted as what they mean, however they were escaped,
// and a number that holds a secret becomes the string [Mark]. Text that is not
// JSON is treated as by [Redactor.Redact]. Whitespace is kept only when there
// is nothing to take out.
func (r *Redactor) JSON(text json.RawMessage) json.RawMessage { return r.json(text, Mark) }

func (r *Redactor) json(text json.RawMessage, mark string) json.RawMessage {
	if !r.Active() {
		return text
	}
	if t := r.table.Load(); len(t.find(text)) == 0 && utf8.Valid(text) && !t.inEscaped(text) {
		return text
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return r.replace(text, mark)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return r.replace(text, mark)
	}
	clean, changed := r.value(value, mark)
	if !changed {
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(clean) != nil {
		return r.replace(text, mark)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// inEscaped reports whether a string of a JSON text with escapes has a secret as what it
// means: escapes can spell one in more ways than there are forms. Reading these strings
// alone takes a third of the time of decoding the text.
func (t *table) inEscaped(text []byte) bool {
	var decoded []byte
	for {
		start := bytes.IndexByte(text, '"')
		if start < 0 {
			return false
		}
		end, escaped := start+1, false
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end, escaped = end+1, true
			}
			end++
		}
		if end >= len(text) {
			return false // it is not JSON
		}
		if escaped {
			decoded = strictjson.AppendUnquote(decoded[:0], text[start:end+1])
			if len(t.find(decoded)) > 0 {
				return true
			}
		}
		text = text[end+1:]
	}
}

// value returns v without secrets and whether that changed it.
func (r *Redactor) value(v any, mark string) (any, bool) {
	changed := false
	switch v := v.(type) {
	case string:
		clean := r.text(v, mark)
		return clean, clean != v
	case json.Number:
		if clean := r.text(v.String(), mark); clean != v.String() {
			return mark, true
		}
	case []any:
		for i, item := range v {
			clean, c := r.value(item, mark)
			v[i], changed = clean, changed || c
		}
		return v, changed
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			name := r.text(key, mark)
			clean, c := r.value(item, mark)
			out[name], changed = clean, changed || c || name != key
		}
		return out, changed
	}
	return v, false
}
