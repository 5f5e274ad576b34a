package sentinels

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Problem is one thing that is wrong with a definition, with its place.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // from 1; 0 when the place is not known
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Path    string `json:"path,omitempty"`   // "steps[2].then[0].command", as written in the file
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do about it: `did you mean "steps"?`
}

// Kind sorts problems for programs; people read the message.
type Kind string

// The kinds of problems. All but [KindWarning] refuse the definition.
const (
	KindSyntax     Kind = "syntax"     // not JSON, also: invalid UTF-8, a byte order mark, trailing data
	KindLimit      Kind = "limit"      // larger or deeper than a definition may be
	KindUnknown    Kind = "unknown"    // a key, step type, trigger or choice that does not exist
	KindDuplicate  Kind = "duplicate"  // a key, id or variable given twice
	KindMissing    Kind = "missing"    // something that must be there
	KindType       Kind = "type"       // another JSON type than wanted
	KindValue      Kind = "value"      // the right type, but not a value that works
	KindExpression Kind = "expression" // a condition that cannot be read
	KindBound      Kind = "bound"      // a loop that nothing ends
	KindWarning    Kind = "warning"    // works, but probably not as meant; only from [Check]
)

// String returns "file:line:col: path: message"; parts that are not known are
// left out, and the hint is not part of it.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		b.WriteByte(':')
	}
	if p.Line > 0 {
		b.WriteString(strconv.Itoa(p.Line))
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(p.Column))
		b.WriteByte(':')
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are all that is wrong with one text, in the order of their places.
// An empty list is no error; use [Problems.Err] to hand it on as one.
type Problems []Problem

// Error returns every problem on a line of its own, hints indented below.
func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
		if p.Hint != "" {
			b.WriteString("\n\t")
			b.WriteString(p.Hint)
		}
	}
	return b.String()
}

// Err returns ps as an error, or nil if it is empty.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// sort orders by place; problems of one place keep the order of their finding.
func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

var _ error = Problems(nil)
