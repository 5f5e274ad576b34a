package sentinels

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The functions of this file read valid JSON without building a tree, as slices of
// the text: references are resolved in every step, and building a tree for that
// would take longer than the step.

// skipSpace returns the offset of the first byte at or after i that is not
// white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the offset after the string that starts at b[i].
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the offset after the value that starts at b[i].
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
		default:
			for i < len(b) && strings.IndexByte(",:]}{[\" \n\t\r", b[i]) < 0 {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

// eachMember calls f for the members of the object at the start of b until f
// returns false. name is the key as written, with its quotes.
func eachMember(b []byte, f func(name, value []byte) bool) {
	i := skipSpace(b, 0) + 1
	for {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] == '}' {
			return
		}
		nameEnd := skipString(b, i)
		name := b[i:nameEnd]
		start := skipSpace(b, skipSpace(b, nameEnd)+1)
		end := skipValue(b, start)
		if !f(name, b[start:end]) {
			return
		}
		if i = skipSpace(b, end); i < len(b) && b[i] == ',' {
			i++
		}
	}
}

// eachItem calls f for the items of the array at the start of b until f returns
// false.
func eachItem(b []byte, f func(value []byte) bool) {
	i := skipSpace(b, 0) + 1
	for {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] == ']' {
			return
		}
		end := skipValue(b, i)
		if !f(b[i:end]) {
			return
		}
		if i = skipSpace(b, end); i < len(b) && b[i] == ',' {
			i++
		}
	}
}

// unquote returns the value of a string literal with its quotes.
func unquote(literal []byte) string {
	if len(literal) < 2 {
		return ""
	}
	inner := literal[1 : len(literal)-1]
	if !slices.Contains(inner, '\\') && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return string(inner)
	}
	return s
}

// appendString appends s as a JSON string in canonical form: only characters that
// must be escaped are, and bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += size
			continue
		}
		i++
	}
	return append(b, '"')
}

// Canonical returns raw without white space, object keys sorted by their bytes
// and strings in one form; numbers stay as written. Two texts with the same
// canonical form are the same value.
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(raw) {
		return nil, fmt.Errorf("canonical: %w", syntaxOf(raw))
	}
	return appendCanonical(make([]byte, 0, len(raw)), raw[skipSpace(raw, 0):]), nil
}

// syntaxOf returns the syntax error of invalid JSON.
func syntaxOf(raw []byte) error {
	var v json.RawMessage
	return json.Unmarshal(raw, &v)
}

// appendCanonical appends the value at the start of raw. Members with equal names keep
// their order, because readers use the last one.
func appendCanonical(b, raw []byte) []byte {
	switch raw[0] {
	case '{':
		type member struct {
			name  string
			value []byte
		}
		var members []member
		eachMember(raw, func(name, value []byte) bool {
			members = append(members, member{unquote(name), value})
			return true
		})
		slices.SortStableFunc(members, func(a, c member) int { return strings.Compare(a.name, c.name) })
		b = append(b, '{')
		for i, m := range members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.name), ':')
			b = appendCanonical(b, m.value)
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		first := true
		eachItem(raw, func(value []byte) bool {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendCanonical(b, value)
			return true
		})
		return append(b, ']')
	case '"':
		return appendString(b, unquote(raw[:skipString(raw, 0)]))
	}
	return append(b, raw[:skipValue(raw, 0)]...)
}
