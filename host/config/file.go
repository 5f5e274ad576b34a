package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readFile sets what the file sets, notes where, and returns every problem.
func readFile(path string, src []byte, leaves []leaf, origins map[string]string) (problems []string) {
	r := &reader{path: path, src: src, leaves: leaves, origins: origins, d: json.NewDecoder(bytes.NewReader(src))}
	if err := r.object(""); err != nil {
		return append(r.problems, r.at(r.d.InputOffset(), syntax(err)))
	}
	if _, err := r.d.Token(); !errors.Is(err, io.EOF) {
		r.problems = append(r.problems, r.at(r.d.InputOffset(), "text behind the JSON value"))
	}
	return r.problems
}

// A reader walks the file's objects, so that it knows the place of every key.
type reader struct {
	path     string
	src      []byte
	d        *json.Decoder
	leaves   []leaf
	origins  map[string]string
	problems []string
}

func syntax(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the file ends in the middle"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// object reads one object whose members are settings below prefix.
func (r *reader) object(prefix string) error {
	t, err := r.d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("an object must stand here")
	}
	for r.d.More() {
		t, err := r.d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)                                           // the decoder allows nothing else here
		key, place := prefix+name, r.d.InputOffset()-int64(len(name))-2 // with both quotes
		if r.section(key) {
			if err := r.object(key + "."); err != nil {
				return err
			}
			continue
		}
		var raw json.RawMessage
		if err := r.d.Decode(&raw); err != nil {
			return err
		}
		if name != "$schema" || prefix != "" {
			r.member(key, raw, place)
		}
	}
	_, err = r.d.Token()
	return err
}

func (r *reader) member(key string, raw json.RawMessage, place int64) {
	i := slices.IndexFunc(r.leaves, func(f leaf) bool { return f.key == key })
	switch {
	case i < 0:
		known := make([]string, len(r.leaves))
		for n, f := range r.leaves {
			known[n] = f.key
		}
		r.problems = append(r.problems, r.at(place, fmt.Sprintf("there is no setting %q%s", key, suggestion(key, known))))
	case strings.HasPrefix(r.origins[key], r.path):
		r.problems = append(r.problems, r.at(place, fmt.Sprintf("%s is set twice", key)))
	default:
		r.origins[key] = fmt.Sprintf("%s:%d", r.path, 1+bytes.Count(r.src[:place], []byte("\n")))
		if err := r.leaves[i].decode(raw); err != nil {
			r.problems = append(r.problems, r.at(place, fmt.Sprintf("%s: %v", key, err)))
		}
	}
}

// section reports whether settings lie below key.
func (r *reader) section(key string) bool {
	return slices.ContainsFunc(r.leaves, func(f leaf) bool { return strings.HasPrefix(f.key, key+".") })
}

// at puts the place in front of what is said of it.
func (r *reader) at(offset int64, text string) string {
	before := r.src[:min(int(offset), len(r.src))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%s:%d:%d: %s", r.path, line, column, text)
}
