package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Member is a name of a JSON object with its value.
type Member struct {
	Name  string
	Value json.RawMessage
}

// An Object is a JSON object whose members keep their order.
type Object []Member

// ReadObject returns the members of a JSON object, and false for anything else.
func ReadObject(raw []byte) (Object, bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var o Object
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		var m Member
		m.Name, _ = name.(string) // the decoder accepts no other names
		if decoder.Decode(&m.Value) != nil {
			return nil, false
		}
		o = append(o, m)
	}
	_, err := decoder.Token()
	return o, err == nil
}

// Get returns the value of a name, nil if there is none.
func (o Object) Get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o[i].Value
	}
	return nil
}

func (o Object) index(name string) int {
	return slices.IndexFunc(o, func(m Member) bool { return m.Name == name })
}

// Set gives a name a value, at its place or at the end.
func (o *Object) Set(name string, value json.RawMessage) {
	if i := o.index(name); i >= 0 {
		(*o)[i].Value = value
		return
	}
	*o = append(*o, Member{name, value})
}

// Without returns the members that do not have one of the names.
func (o Object) Without(names ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return slices.Contains(names, m.Name) })
}

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) { return o.JSON(), nil }

// JSON returns the text of the object.
func (o Object) JSON() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, Quote(m.Name)...), ':'), m.Value...)
	}
	return append(b, '}')
}

// ReadList returns the items of a JSON array, and false for anything else.
func ReadList(raw []byte) ([]json.RawMessage, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	var list []json.RawMessage
	return list, json.Unmarshal(raw, &list) == nil
}

// List returns the JSON array of items.
func List(items []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}

// ReadText returns the text of a JSON string, and false for anything else.
func ReadText(raw []byte) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	// Most pieces of a stream have nothing to unescape.
	if last := len(raw) - 1; last > 0 && bytes.IndexByte(raw, '\\') < 0 && bytes.IndexByte(raw[1:], '"') == last-1 && plainText(raw) {
		return string(raw[1:last]), true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

// plainText reports whether a text is UTF-8 without control characters.
func plainText(raw []byte) bool {
	return utf8.Valid(raw) && bytes.IndexFunc(raw, func(r rune) bool { return r < ' ' }) < 0
}

// Quote returns a text as a JSON string, in which <, > and & are as they are.
func Quote(text string) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(strings.ToValidUTF8(text, "\ufffd")) // a text always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }
