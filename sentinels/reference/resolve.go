package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Lookup returns the value of a variable, which must be valid JSON. An empty value
// with ok is a variable of the definition that has no value yet.
type Lookup func(name string) (value json.RawMessage, ok bool)

// Notes say what became of references that are not replaced by a value.
type Notes struct {
	Unknown []string // left as written: no variable has the name
	Unset   []string // null: the variable has no value yet

	// Written has the references of shell lines, as written, by the names of the environment
	// variables that stand for them.
	Written map[string]string
}

// Add adds the notes of another value.
func (n *Notes) Add(more Notes) {
	n.Unknown = append(n.Unknown, more.Unknown...)
	n.Unset = append(n.Unset, more.Unset...)
	if n.Written == nil {
		n.Written = more.Written
		return
	}
	maps.Copy(n.Written, more.Written)
}

// AsWritten replaces in a text the environment variables of shell lines by the references
// that they stand for.
func AsWritten(text string, written map[string]string) string {
	if !strings.Contains(text, "${"+shellVariable) {
		return text
	}
	for name, ref := range written {
		text = strings.ReplaceAll(text, "${"+name+"}", ref)
	}
	return text
}

// A MissingError reports a reference whose variable has a value, but not at the path.
type MissingError struct {
	Reference string // as written
	Exists    string // what exists instead, such as "$f has executionId, output"
	Hint      string // what to do about it, "" if that is unknown
}

func (e *MissingError) Error() string { return e.Reference + ": " + e.Exists }

// MaxResolved limits the length in bytes of a resolved value: a short text can contain
// a long variable many times.
const MaxResolved = 16 << 20

// ErrTooLarge is returned by the Resolve functions for values above [MaxResolved].
var ErrTooLarge = errors.New("the resolved value has more than " + strconv.Itoa(MaxResolved) + " bytes")

// Resolve replaces the references in every string of raw by their values. A string
// that is exactly one reference becomes the value itself, of any type; a reference
// within other text becomes its [Text]. A reference to an unknown name is not replaced.
// The error is a [*MissingError] if a value has no part at the path of a reference, and
// [ErrTooLarge] for a result above [MaxResolved]. If there is nothing to replace,
// Resolve returns raw itself, without validating it.
func Resolve(raw json.RawMessage, lookup Lookup) (json.RawMessage, Notes, error) {
	return (*Shape)(nil).Resolve(raw, lookup)
}

// Resolve is the function [Resolve], except that where the schema of s requires a string,
// a value becomes its text. s may be nil.
func (s *Shape) Resolve(raw json.RawMessage, lookup Lookup) (json.RawMessage, Notes, error) {
	if !hasDollar(raw) {
		return raw, Notes{}, nil
	}
	if !json.Valid(raw) {
		return nil, Notes{}, fmt.Errorf("resolve: %w", strictjson.Check(raw, strictjson.Unlimited()))
	}
	raw = bytes.TrimSpace(raw)
	r := resolver{lookup: lookup}
	if raw[0] == '"' { // the value itself, which may be large, and not a copy
		if ref, ok := asReference(strictjson.Unquote(raw)); ok {
			if value, known := r.find(ref); known && !s.asText(value) && len(value) <= MaxResolved && r.missing == nil {
				return value, r.notes, nil
			}
			r.notes = Notes{}
		}
	}
	r.out = make([]byte, 0, len(raw)+256)
	r.value(raw, s)
	switch {
	case r.missing != nil:
		return nil, Notes{}, r.missing
	case len(r.out) > MaxResolved:
		return nil, Notes{}, ErrTooLarge
	}
	return r.out, r.notes, nil
}

// ResolveText replaces the references in a text by the texts of their values, and "$$"
// by a dollar. The errors are those of [Resolve].
func ResolveText(s string, lookup Lookup) (string, Notes, error) {
	r := resolver{lookup: lookup}
	b := r.appendText(nil, s)
	switch {
	case r.missing != nil:
		return "", Notes{}, r.missing
	case len(b) > MaxResolved:
		return "", Notes{}, ErrTooLarge
	}
	return string(b), r.notes, nil
}

// hasDollar reports whether raw can contain a reference. Some encoders write the
// dollar as an escape.
func hasDollar(raw []byte) bool {
	return bytes.IndexByte(raw, '$') >= 0 || bytes.Contains(raw, []byte(`\u0024`))
}

type resolver struct {
	lookup  Lookup
	out     []byte
	buffer  []byte // of the text that is being resolved
	notes   Notes
	missing error // the first *MissingError
}

// value appends one value. It copies parts without a dollar, and returns at once after
// an error and if the result is already too long.
func (r *resolver) value(raw []byte, s *Shape) {
	switch {
	case r.missing != nil || len(r.out) > MaxResolved:
	case !hasDollar(raw):
		r.out = append(r.out, raw...)
	case raw[0] == '{':
		r.out = append(r.out, '{')
		first := true
		strictjson.EachMember(raw, func(name, value []byte) bool {
			if !first {
				r.out = append(r.out, ',')
			}
			first = false
			r.out = append(append(r.out, name...), ':')
			r.value(value, s.property(name))
			return true
		})
		r.out = append(r.out, '}')
	case raw[0] == '[':
		r.out = append(r.out, '[')
		first := true
		strictjson.EachItem(raw, func(value []byte) bool {
			if !first {
				r.out = append(r.out, ',')
			}
			first = false
			r.value(value, s.item())
			return true
		})
		r.out = append(r.out, ']')
	default:
		r.str(strictjson.Unquote(raw), s)
	}
}

// str appends a string of a shape with its references resolved.
func (r *resolver) str(s string, shape *Shape) {
	if ref, ok := asReference(s); ok {
		value, known := r.find(ref)
		switch {
		case !known:
			r.out = strictjson.AppendString(r.out, s)
		case shape.asText(value):
			r.out = strictjson.AppendString(r.out, Text(value))
		default:
			r.out = append(r.out, value...)
		}
		return
	}
	r.buffer = r.appendText(r.buffer[:0], s)
	r.out = strictjson.AppendString(r.out, r.buffer)
}

// asReference returns the reference that is the whole of a text.
func asReference(s string) (Reference, bool) {
	ref, ok := nextReference(s, 0)
	return ref, ok && ref.start == 0 && ref.end == len(s)
}

// isPlainText reports whether a value is a string that need not be decoded and encoded again to be the same
// for every reader: it has no escape of a code point, which may be half of a pair, and is UTF-8.
func isPlainText(value json.RawMessage) bool {
	return len(value) > 1 && value[0] == '"' && !bytes.Contains(value, []byte(`\u`)) && utf8.Valid(value)
}

// appendText appends a text with its references resolved. It reads s once, so that a
// dollar in a value is never read as a reference.
func (r *resolver) appendText(b []byte, s string) []byte {
	for len(b) <= MaxResolved && r.missing == nil {
		before, _, found := strings.Cut(s, "$")
		b = append(b, before...)
		if !found {
			return b
		}
		s = s[len(before):]
		ref, ok := referenceAt(s, 0, true)
		if !ok { // also of "$$", which is a dollar
			b = append(b, '$')
			s = strings.TrimPrefix(s[1:], "$")
			continue
		}
		if value, known := r.find(ref); known {
			b = appendText(b, value)
		} else {
			b = append(b, s[:ref.end]...)
		}
		s = s[ref.end:]
	}
	return b
}

// find returns the value of a reference. It records a reference without a value.
func (r *resolver) find(ref Reference) (json.RawMessage, bool) {
	value, ok := r.lookup(ref.Name)
	switch {
	case !ok:
		note(&r.notes.Unknown, ref)
		return nil, false
	case len(value) == 0:
		note(&r.notes.Unset, ref)
		return null, true
	}
	part, ok := Path(value, ref.Path)
	if !ok && r.missing == nil {
		r.missing = missing(value, ref, false)
	}
	return part, ok
}

// null is the value of a reference without one.
var null = json.RawMessage("null")

// note adds a reference to a list, once.
func note(list *[]string, ref Reference) {
	if text := ref.String(); !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}
