package strictjson

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// A Member is one key of an object with its value.
type Member struct {
	Key         string
	Value       json.RawMessage // as written, without the space around it
	Offset      int             // of the key in the text, in bytes
	ValueOffset int             // of the value in the text, in bytes
}

// Members checks text as [Check] does and returns the members of the object that
// it is, in order. Any other value is an error of [Type].
func Members(text []byte, limits Limits) ([]Member, error) {
	if err := Check(text, limits); err != nil {
		return nil, err
	}
	start := skipSpace(text, 0)
	if kind := jsontext.Value(text[start:]).Kind(); kind != '{' {
		return nil, newError(text, start, "", Type, "want an object, got "+jsonKind(kind))
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := d.ReadToken(); err != nil {
		return nil, syntaxError(text, d, err)
	}
	var list []Member
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return nil, syntaxError(text, d, err)
		}
		m := Member{Key: key.String(), Offset: lastString(text, int(d.InputOffset()))}
		value, err := d.ReadValue()
		if err != nil {
			return nil, syntaxError(text, d, err)
		}
		m.Value, m.ValueOffset = bytes.Clone(value), int(d.InputOffset())-len(value)
		list = append(list, m)
	}
	return list, nil
}

// Any checks text as [Check] does and returns its value as nil, bool,
// [json.Number], string, []any and map[string]any.
func Any(text []byte, limits Limits) (any, error) {
	if err := Check(text, limits); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, newError(text, 0, "", Value, err.Error())
	}
	return v, nil
}
