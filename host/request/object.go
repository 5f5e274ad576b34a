// Package request reads what a step plugin asks of the HOST, and writes answers:
// objects of JSON, without the leniencies of encoding/json. A guest's request is
// compared with what was granted, so no two readers of it may see two different
// ones.
package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// A Member is one name and value of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members reads an object whose names are as written and come once. Nothing may
// stand behind it.
func Members(raw []byte) ([]Member, error) {
	// encoding/json would put replacement characters in, and what is checked
	// would not be what was written.
	if !utf8.Valid(raw) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	open, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	if open != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	var list []Member
	// Names are compared as decoded: "\u0061" is another spelling of "a".
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("no JSON: %w", err)
		}
		name, _ := token.(string) // the decoder lets nothing else be a name
		if seen[name] {
			return nil, fmt.Errorf("%.100q is there twice", name)
		}
		seen[name] = true
		m := Member{Name: name}
		if err := d.Decode(&m.Value); err != nil {
			return nil, fmt.Errorf("no JSON: %w", err)
		}
		list = append(list, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	// Only blanks may follow; a second object would be read by nobody.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text behind the object")
	}
	return list, nil
}

// Text reads a string; null is an empty one, as an SDK may write what is absent.
func Text(raw json.RawMessage) (string, error) {
	if string(raw) == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("wanted a text")
	}
	return s, nil
}

// Number reads a whole number that is not negative; null is 0. One with a point
// or an exponent is refused even where it is whole, as encoding/json has it.
func Number(raw json.RawMessage) (int64, error) {
	var n int64
	if string(raw) == "null" {
		return 0, nil
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, errors.New("wanted a whole number")
	}
	if n < 0 {
		return 0, errors.New("wanted no negative number")
	}
	return n, nil
}

// Flag reads true or false; null is false.
func Flag(raw json.RawMessage) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	return false, errors.New("wanted true or false")
}

// Answer writes a value as JSON in which < > and & stand for themselves: guests
// are no web pages, and each would take six bytes of an answer that is bounded.
func Answer(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
