package reference

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Reference is "$name.path[0]" in a text.
type Reference struct {
	Name       string
	Path       string // with its leading "." or "[", "" without one
	start, end int    // in the text, in bytes
}

// String returns the reference as it is written.
func (r Reference) String() string { return "$" + r.Name + r.Path }

// referenceAt reads the reference whose dollar is at s[at].
func referenceAt(s string, at int) (Reference, bool) {
	end := at + 1
	for end < len(s) && nameByte(s[end], end == at+1) {
		end++
	}
	if end == at+1 {
		return Reference{}, false
	}
	ref := Reference{start: at, Name: s[at+1 : end]}
	start := end
	for end < len(s) {
		next := end
		switch s[end] {
		case '.':
			for next++; next < len(s) && nameByte(s[next], next == end+1); next++ {
			}
			if next == end+1 { // the full stop of a sentence
				next = end
			}
		case '[':
			for next++; next < len(s) && s[next] >= '0' && s[next] <= '9'; next++ {
			}
			if next == end+1 || next >= len(s) || s[next] != ']' {
				next = end
			} else {
				next++
			}
		}
		if next == end {
			break
		}
		end = next
	}
	ref.Path, ref.end = s[start:end], end
	return ref, true
}

// nextReference returns the first reference at or after from, skipping "$$".
func nextReference(s string, from int) (Reference, bool) {
	for i := from; i < len(s); i++ {
		if s[i] != '$' {
			continue
		}
		if i+1 < len(s) && s[i+1] == '$' {
			i++
			continue
		}
		if ref, ok := referenceAt(s, i); ok {
			return ref, true
		}
	}
	return Reference{}, false
}

// Contains reports whether a text contains a reference.
func Contains(s string) bool {
	_, ok := nextReference(s, 0)
	return ok
}

// IsReference reports whether a text is one reference and nothing else.
func IsReference(s string) bool {
	ref, ok := nextReference(s, 0)
	return ok && ref.start == 0 && ref.end == len(s)
}

// Names returns the names of the variables that the strings of a JSON value refer to,
// each once, in the order of their first use. Keys are not searched, and a value that
// is not valid JSON has none.
func Names(raw json.RawMessage) []string {
	if !hasDollar(raw) || !json.Valid(raw) {
		return nil
	}
	var names []string
	var walk func(raw []byte)
	walk = func(raw []byte) {
		switch {
		case !hasDollar(raw):
		case raw[0] == '{':
			strictjson.EachMember(raw, func(_, value []byte) bool { walk(value); return true })
		case raw[0] == '[':
			strictjson.EachItem(raw, func(value []byte) bool { walk(value); return true })
		default:
			s := strictjson.Unquote(raw)
			for ref, ok := nextReference(s, 0); ok; ref, ok = nextReference(s, ref.end) {
				if !slices.Contains(names, ref.Name) {
					names = append(names, ref.Name)
				}
			}
		}
	}
	walk(bytes.TrimSpace(raw))
	return names
}

// IsName reports whether s can be the name of a variable: a letter or "_", then letters,
// digits and "_", ASCII only.
func IsName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i], i == 0) {
			return false
		}
	}
	return s != ""
}

// nameByte reports whether c can be in a variable name; the first byte cannot be a digit.
func nameByte(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}
