package strictjson

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// Kind sorts errors for programs; people read the reason.
type Kind string

// The kinds of errors.
const (
	Syntax    Kind = "syntax"    // not JSON, also invalid UTF-8, a byte order mark, text after the value
	Limit     Kind = "limit"     // above one of the limits
	Duplicate Kind = "duplicate" // a key given twice
	Unknown   Kind = "unknown"   // a key that the type does not have
	Type      Kind = "type"      // another JSON type than wanted
	Value     Kind = "value"     // the right type, but a value that does not work
)

// Error is the first problem of a text, with its place.
type Error struct {
	Offset int    // in bytes
	Line   int    // from 1
	Column int    // from 1, in characters
	Path   string // "steps[2].params.x"; empty for the whole text
	Kind   Kind
	Reason string
}

// Error returns "line 2, column 5: steps[0].x: reason".
func (e *Error) Error() string {
	s := fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	if e.Path != "" {
		s += e.Path + ": "
	}
	return s + e.Reason
}

// Reasons of errors about the whole text, for callers that have a hint for them.
const (
	StartsWithMark = "the text starts with a byte order mark"
	NotUTF8        = "is not UTF-8" // the end of the reason
	TextAfterValue = "text after the JSON value"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// maxPath bounds the path in an error, and maxKey a key that it repeats, in bytes.
const (
	maxPath = 200
	maxKey  = 100
)

func newError(text []byte, offset int, path string, kind Kind, reason string) *Error {
	line, column := position(text, offset)
	return &Error{Offset: offset, Line: line, Column: column, Path: textcut.Mark(path, maxPath), Kind: kind, Reason: reason}
}

func position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// path returns where d is, as "steps[2].x".
func path(d *jsontext.Decoder) string {
	at, depth := "", 0
	for token := range d.StackPointer().Tokens() {
		depth++
		if kind, _ := d.StackIndex(depth); kind == '[' {
			at += "[" + token + "]"
		} else {
			at = Join(at, token)
		}
	}
	return at
}

// Join returns the path of a key of the object at outer, as in an [Error].
func Join(outer, key string) string {
	switch {
	case !isPlain(key):
		return outer + "[" + strconv.Quote(textcut.Mark(key, maxKey)) + "]"
	case outer == "":
		return key
	}
	return outer + "." + key
}

// isPlain reports whether a key can stand in a path without quotes.
func isPlain(key string) bool {
	if key == "" || len(key) > 64 {
		return false
	}
	for i, c := range []byte(key) {
		switch {
		case c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return true
}
