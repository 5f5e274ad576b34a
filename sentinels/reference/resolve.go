package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Lookup returns the value of a variable. The value must be valid JSON.
type Lookup func(name string) (value json.RawMessage, ok bool)

// MaxResolved limits the length in bytes of a resolved value: a short text can contain
// a long variable many times.
const MaxResolved = 16 << 20

// ErrTooLarge is returned by the Resolve functions for values above [MaxResolved].
var ErrTooLarge = errors.New("the resolved value has more than " + strconv.Itoa(MaxResolved) + " bytes")

// Resolve replaces the references in every string of raw by their values. A string
// that is exactly one reference becomes the value itself, of any type; a reference
// within other text becomes its [Text]. unknown are the references without a value,
// as written; they are not replaced. If there is nothing to replace, Resolve returns
// raw itself, without validating it.
func Resolve(raw json.RawMessage, lookup Lookup) (out json.RawMessage, unknown []string, err error) {
	return (*Shape)(nil).Resolve(raw, lookup)
}

// Resolve is the function [Resolve], except that where the schema of s requires a string,
// a value becomes its text. s may be nil.
func (s *Shape) Resolve(raw json.RawMessage, lookup Lookup) (out json.RawMessage, unknown []string, err error) {
	if !hasDollar(raw) {
		return raw, nil, nil
	}
	if !json.Valid(raw) {
		return nil, nil, fmt.Errorf("resolve: %w", strictjson.Check(raw, strictjson.Unlimited()))
	}
	r := resolver{lookup: lookup, out: make([]byte, 0, len(raw)+256)}
	r.value(bytes.TrimSpace(raw), s)
	if len(r.out) > MaxResolved {
		return nil, nil, ErrTooLarge
	}
	return r.out, r.unknown, nil
}

// ResolveText replaces the references in a text by the texts of their values,
// and "$$" by a dollar. A result is cut at [MaxResolved].
func ResolveText(s string, lookup Lookup) (text string, unknown []string) {
	r := resolver{lookup: lookup}
	b := r.appendText(nil, s)
	if len(b) > MaxResolved {
		return strings.ToValidUTF8(string(b[:MaxResolved]), ""), r.unknown
	}
	return string(b), r.unknown
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
	unknown []string
}

// value appends one value. It copies parts without a dollar, and returns at once if
// the result is already too long.
func (r *resolver) value(raw []byte, s *Shape) {
	switch {
	case len(r.out) > MaxResolved:
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
		r.str(strictjson.Unquote(raw), s != nil && s.text)
	}
}

// str appends a string with its references resolved; asText is true if the schema
// requires a string.
func (r *resolver) str(s string, asText bool) {
	if ref, ok := nextReference(s, 0); ok && ref.start == 0 && ref.end == len(s) {
		value, known := r.find(ref)
		switch {
		case !known:
			r.out = strictjson.AppendString(r.out, s)
		case asText:
			r.out = strictjson.AppendString(r.out, Text(value))
		default:
			r.out = append(r.out, value...)
		}
		return
	}
	r.buffer = r.appendText(r.buffer[:0], s)
	r.out = strictjson.AppendString(r.out, r.buffer)
}

// appendText appends a text with its references resolved. It reads s once, so that a
// dollar in a value is never read as a reference.
func (r *resolver) appendText(b []byte, s string) []byte {
	for len(b) <= MaxResolved {
		before, _, found := strings.Cut(s, "$")
		b = append(b, before...)
		if !found {
			return b
		}
		s = s[len(before):]
		ref, ok := referenceAt(s, 0)
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

// find returns the value of a reference, and records a reference without a value.
func (r *resolver) find(ref Reference) (json.RawMessage, bool) {
	if value, ok := r.lookup(ref.Name); ok && len(value) > 0 {
		if part, ok := Path(value, ref.Path); ok {
			return part, true
		}
	}
	if text := ref.String(); !slices.Contains(r.unknown, text) {
		r.unknown = append(r.unknown, text)
	}
	return nil, false
}
