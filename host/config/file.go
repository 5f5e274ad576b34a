package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxFile is the largest configuration file, in bytes.
const maxFile = 1 << 20

// readFile sets what the file sets, notes where, and returns every problem of its
// settings. A file that is not strict JSON has one problem, the first.
func readFile(path string, src []byte, leaves []leaf, origins map[string]string) (problems []string) {
	r := &reader{path: path, src: src, leaves: leaves, origins: origins}
	r.object("", src, 0)
	return r.problems
}

// reader walks the file's objects and knows the place of every key.
type reader struct {
	path     string
	src      []byte
	leaves   []leaf
	origins  map[string]string
	problems []string
}

// object reads one object whose members are settings below prefix. at is its
// offset in the file.
func (r *reader) object(prefix string, text []byte, at int) {
	members, err := strictjson.Members(text, strictjson.Limits{})
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) {
		reason := bad.Reason
		if bad.Path != "" {
			reason = bad.Path + ": " + reason
		}
		r.problems = append(r.problems, r.at(at+bad.Offset, reason))
		return
	}
	for _, m := range members {
		key, place := prefix+m.Key, at+m.Offset
		switch {
		case r.section(key):
			r.object(key+".", m.Value, at+m.ValueOffset)
		case m.Key != "$schema" || prefix != "":
			r.member(key, m.Value, place)
		}
	}
}

func (r *reader) member(key string, raw json.RawMessage, place int) {
	i := slices.IndexFunc(r.leaves, func(f leaf) bool { return f.key == key })
	switch {
	case i < 0:
		known := make([]string, len(r.leaves))
		for n, f := range r.leaves {
			known[n] = f.key
		}
		r.problems = append(r.problems, r.at(place, fmt.Sprintf("unknown setting %q%s", key, suggestion(key, known))))
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

// at prefixes a text with the place it is about.
func (r *reader) at(offset int, text string) string {
	line, column := strictjson.Position(r.src, offset)
	return fmt.Sprintf("%s:%d:%d: %s", r.path, line, column, text)
}
