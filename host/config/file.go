package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Format is the format of the configuration files that this program reads. A file
// without "format" has format 1. A change with which an earlier file would mean
// something else needs the next number, and the translation of the earlier one in
// reader.read.
const Format = 1

// maxFile is the largest configuration file, in bytes.
const maxFile = 1 << 20

// read sets what the file sets, notes where, and returns every problem of its
// settings. A file that is not strict JSON has one problem, the first.
func (r *reader) read(src []byte) (problems []string) {
	r.src, r.values = src, map[string]fileValue{}
	r.object("", src, 0)
	if r.newer != "" { // what else is wrong follows from it
		r.unknown = nil
		return []string{r.newer}
	}
	return r.problems
}

// A fileValue is the value of a setting in the file.
type fileValue struct {
	text   []byte
	offset int // in the file
}

// reader walks the file's objects and knows the place of every key.
type reader struct {
	path     string
	src      []byte
	leaves   []leaf
	origins  map[string]string
	values   map[string]fileValue // by key
	problems []string
	unknown  []string // those of problems about settings that this program does not know
	newer    string   // the file has a newer format
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
		case m.Key == "format" && prefix == "":
			r.format(m.Value, place)
		case m.Key != "$schema" && m.Key != "version" || prefix != "":
			r.values[key] = fileValue{m.Value, at + m.ValueOffset}
			r.member(key, m.Value, place)
		}
	}
}

// format checks the format of the file.
func (r *reader) format(raw json.RawMessage, place int) {
	var n int
	switch err := json.Unmarshal(raw, &n); {
	case err != nil || n < 1:
		r.problems = append(r.problems, r.at(place, "format: want a number from 1"))
	case n > Format:
		var by struct{ Version string }
		_ = json.Unmarshal(r.src, &by) // without it the version is not known
		r.newer = r.at(place, fmt.Sprintf("format %d, written by %s; this program reads formats up to %d", n, cmp.Or(by.Version, "a newer version of sentinel"), Format))
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
		text := r.at(place, fmt.Sprintf("unknown setting %q%s", key, suggestion(key, known)))
		r.problems, r.unknown = append(r.problems, text), append(r.unknown, text)
	default:
		r.origins[key] = fmt.Sprintf("%s:%d", r.path, 1+bytes.Count(r.src[:place], []byte("\n")))
		if bad := r.leaves[i].mistakes(raw); len(bad) > 0 {
			for _, m := range bad {
				r.problems = append(r.problems, fmt.Sprintf("%s: %s", r.place(key, m.path), strings.TrimPrefix(key+m.path+": "+m.text, ": ")))
			}
		} else if err := r.leaves[i].decode(raw); err != nil {
			r.problems = append(r.problems, r.at(place, fmt.Sprintf("%s: %v", key, err)))
		}
	}
}

// place returns where a value within a setting is in the file, "" if the setting is not
// in it.
func (r *reader) place(key, path string) string {
	v, ok := r.values[key]
	if !ok {
		return ""
	}
	line, column := strictjson.Position(r.src, v.offset)
	_, l, c := strictjson.Find(v.text, path)
	if l == 1 {
		c += column - 1
	}
	return fmt.Sprintf("%s:%d:%d", r.path, line+l-1, c)
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
