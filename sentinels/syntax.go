package sentinels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Limits of a definition's text. They are the defaults for all JSON that the host reads.
const (
	MaxBytes       = strictjson.DefaultBytes       // of the whole text
	MaxDepth       = strictjson.DefaultDepth       // of nested arrays and objects
	MaxKeys        = strictjson.DefaultKeys        // of all objects together
	MaxStringBytes = strictjson.DefaultStringBytes // of one string as written
)

type (
	node   = strictjson.Node
	member = strictjson.NodeMember
)

// A source is the syntax tree of a text with the name of its file, for problems.
type source struct {
	file string
	*strictjson.Tree
}

func (s *source) problem(offset int, path string, kind Kind, hint, message string) Problem {
	line, column := s.Position(offset)
	return Problem{File: s.file, Line: line, Column: column, Path: path, Kind: kind, Message: message, Hint: hint}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// parse reads a text with comments into a tree, and returns the problems of its syntax,
// also duplicate keys and invalid strings. The root is nil if the text is not JSON.
func parse(file string, text []byte) (*source, Problems) {
	var problems Problems
	if bytes.HasPrefix(text, byteOrderMark) {
		problems = append(problems, Problem{File: file, Line: 1, Column: 1, Kind: KindSyntax, Message: strictjson.StartsWithMark, Hint: syntaxHint(strictjson.StartsWithMark)})
		text = text[len(byteOrderMark):] // the rest may have other problems
	}
	src := &source{file: file, Tree: strictjson.ParseWithComments(text, strictjson.Limits{})}
	for _, e := range src.Errors {
		message, hint := e.Reason, syntaxHint(e.Reason)
		if e.Kind == strictjson.Syntax && hint == "" {
			message, hint = notJSON(text, e.Offset, message)
		}
		problems = append(problems, Problem{File: file, Line: e.Line, Column: e.Column, Path: e.Path, Kind: Kind(e.Kind), Message: message, Hint: hint})
	}
	return src, problems
}

// parseDefinition is parse for the text of a definition, which may be the answer of a
// command that shows one: {"document": {"data": DEFINITION}} of data/read, a document of
// data/list, and {"sentinelId": ..., "definition": DEFINITION} of sentinel/export. The
// root is the definition, so that paths begin there; positions are those in the text.
func parseDefinition(file string, text []byte) (*source, Problems) {
	src, problems := parse(file, text)
	if what, hint := foreign(src.Root, text); what != "" {
		src.Root = nil
		return src, Problems{{File: file, Line: 1, Column: 1, Kind: KindSyntax, Message: "this is " + what + ", not a definition", Hint: hint}}
	}
	if src.Root != nil {
		if inner := shown(src.Root); inner != nil {
			src.Root = inner.Detach()
		}
	}
	return src, problems
}

// shown returns the definition in the answer of a command, or nil.
func shown(n *node) *node {
	object := func(n *node) bool { return n != nil && n.Kind == '{' }
	if !object(n) || n.Member("steps") != nil || n.Member(recipeSteps) != nil {
		return nil
	}
	if document := n.Member("document"); object(document) && len(n.Members) == 1 {
		n = document
	}
	inner := n.Member("data")
	if collection := n.Member("collection"); collection == nil || collection.Text != "sentinels" {
		inner = nil
	}
	if n.Member("sentinelId") != nil {
		inner = n.Member("definition")
	}
	if !object(inner) {
		return nil
	}
	return inner
}

// syntaxHint returns what to do about an error of the whole text.
func syntaxHint(reason string) string {
	switch {
	case reason == strictjson.StartsWithMark:
		return "save the file as UTF-8 without a byte order mark"
	case strings.HasSuffix(reason, strictjson.NotUTF8):
		return "save the file as UTF-8"
	case reason == strictjson.TextAfterValue:
		return "a file holds exactly one definition"
	}
	return ""
}

// Standardize returns a text without comments and trailing commas, as standard JSON.
// It is for texts that are sent to another host: it reports problems of the syntax,
// but only that host can check step types and triggers.
func Standardize(file string, text []byte) (json.RawMessage, Problems) {
	src, problems := parse(file, text)
	if len(problems) > 0 {
		return nil, problems
	}
	return src.Text, nil
}

// Canonical returns raw without white space, object keys sorted by their bytes
// and strings in one form; numbers stay as written. Two texts with the same
// canonical form are the same value. It accepts what encoding/json does, also equal keys
// and half of a surrogate pair, because third-party plugins and other stores write such texts.
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(raw) {
		return nil, fmt.Errorf("canonical: %w", strictjson.Check(raw, strictjson.Unlimited()))
	}
	return appendCanonical(make([]byte, 0, len(raw)), bytes.TrimSpace(raw)), nil
}

// appendCanonical appends a value. Members with equal names keep their order, because
// readers use the last one.
func appendCanonical(b, raw []byte) []byte {
	switch raw[0] {
	case '{':
		type member struct {
			name  string
			value []byte
		}
		var members []member
		strictjson.EachMember(raw, func(name, value []byte) bool {
			members = append(members, member{strictjson.Unquote(name), value})
			return true
		})
		slices.SortStableFunc(members, func(a, c member) int { return strings.Compare(a.name, c.name) })
		b = append(b, '{')
		for i, m := range members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(append(strictjson.AppendString(b, m.name), ':'), m.value)
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		empty := len(b)
		strictjson.EachItem(raw, func(value []byte) bool {
			if len(b) > empty {
				b = append(b, ',')
			}
			b = appendCanonical(b, value)
			return true
		})
		return append(b, ']')
	case '"':
		return strictjson.AppendString(b, strictjson.Unquote(raw))
	}
	return append(b, raw...)
}
