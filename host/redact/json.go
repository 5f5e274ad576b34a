package redact

import (
	"bytes"
	"encoding/json"
	"io"
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
	// Escapes can spell a secret in more ways than there are forms, so a text
	// with a backslash is always read; other texts only after a hit.
	if !bytes.ContainsRune(text, '\\') && len(r.table.Load().find(text)) == 0 {
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
