package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// A member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members reads an object without the leniencies of encoding/json: names are
// as written and come once, so that two readers of a request cannot see two
// different ones.
func members(raw []byte) ([]member, error) {
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
	var list []member
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
		m := member{name: name}
		if err := d.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("no JSON: %w", err)
		}
		list = append(list, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text behind the object")
	}
	return list, nil
}

// text reads a string; null is an empty one, as an SDK may write what is absent.
func text(raw json.RawMessage) (string, error) {
	if string(raw) == "null" {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("wanted a text")
	}
	return s, nil
}
