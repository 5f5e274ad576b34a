package reference

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Reference is "$name.path[0]" in a text.
type Reference struct {
	Name       string
	Path       string // as written, with its leading ".", "?." or "[", "" without one
	Braces     bool   // it is written as ${name.path}, which ends it before other text
	start, end int    // in the text, in bytes
}

// String returns the reference as it is written.
func (r Reference) String() string {
	if r.Braces {
		return "${" + r.Name + r.Path + "}"
	}
	return "$" + r.Name + r.Path
}

// referenceAt reads the reference whose dollar is at s[at]. Parts after "?." belong to
// it if optional is true, and it may be in braces; in a shell line "?" is a pattern, and
// braces belong to the shell.
func referenceAt(s string, at int, optional bool) (Reference, bool) {
	if optional && strings.HasPrefix(s[at:], "${") {
		ref, ok := referenceAt(s, at+1, true)
		if !ok || ref.Braces || ref.end >= len(s) || s[ref.end] != '}' {
			return Reference{}, false
		}
		ref.start, ref.end, ref.Braces = at, ref.end+1, true
		return ref, true
	}
	end := at + 1
	for end < len(s) && nameByte(s[end], end == at+1) {
		end++
	}
	if end == at+1 {
		return Reference{}, false
	}
	ref := Reference{start: at, Name: s[at+1 : end]}
	start := end
	for next := partEnd(s, end, optional); next > end; next = partEnd(s, end, optional) {
		end = next
	}
	ref.Path, ref.end = s[start:end], end
	return ref, true
}

// partEnd returns the end of the part of a path that starts at s[at]: ".name", "[0]",
// `["any text"]`, or one of these after "?" and with a dot. It returns at if there is none.
func partEnd(s string, at int, optional bool) int {
	start := at
	if optional && strings.HasPrefix(s[at:], "?.") {
		if start += 2; start < len(s) && s[start] != '[' {
			start-- // ".name"
		}
	}
	if start >= len(s) {
		return at
	}
	end := start + 1
	switch s[start] {
	case '.':
		for end < len(s) && nameByte(s[end], end == start+1) {
			end++
		}
		if end > start+1 { // else the full stop of a sentence
			return end
		}
	case '[':
		if end < len(s) && (s[end] == '"' || s[end] == '\'') {
			length := strings.IndexByte(s[end+1:], s[end])
			if length > 0 && strings.HasPrefix(s[end+1+length+1:], "]") {
				return end + 1 + length + 2
			}
			return at
		}
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		if end > start+1 && end < len(s) && s[end] == ']' {
			return end + 1
		}
	}
	return at
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
		if ref, ok := referenceAt(s, i, true); ok {
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
	_, ok := asReference(s)
	return ok
}

// Names returns the names of the variables that the strings of a JSON value refer to,
// each once, in the order of their first use. Keys are not searched, and a value that
// is not valid JSON has none.
func Names(raw json.RawMessage) []string {
	var names []string
	seen := map[string]bool{}
	for _, ref := range In(raw) {
		if !seen[ref.Name] {
			seen[ref.Name] = true
			names = append(names, ref.Name)
		}
	}
	return names
}

// In returns the references in the strings of a JSON value, each text once, in the order
// of their first use. Keys are not searched, and a value that is not valid JSON has none.
func In(raw json.RawMessage) []Reference {
	if !hasDollar(raw) || !json.Valid(raw) {
		return nil
	}
	var refs []Reference
	seen := map[Reference]bool{} // without their places
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
				if written := (Reference{Name: ref.Name, Path: ref.Path, Braces: ref.Braces}); !seen[written] {
					seen[written] = true
					refs = append(refs, ref)
				}
			}
		}
	}
	walk(bytes.TrimSpace(raw))
	return refs
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
