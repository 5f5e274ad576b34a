package sentinels

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Problem is one error or warning about a definition, with its position.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // from 1; 0 if the position is not known
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Path    string `json:"path,omitempty"`   // "steps[2].then[0].command", as written in the file
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do about it: `did you mean "steps"?`
	Denied  bool   `json:"-"`              // with KindAbsent: it is there, and a person or a setting has to allow it
}

// Kind classifies problems for programs; Message is for users.
type Kind string

// The kinds of problems. A definition with a problem of any kind but [KindWarning] and
// [KindAbsent] is refused.
const (
	KindSyntax     Kind = "syntax"     // not JSON, also: invalid UTF-8, a byte order mark, trailing data
	KindLimit      Kind = "limit"      // larger or nested deeper than a definition may be
	KindUnknown    Kind = "unknown"    // a key, step type, trigger or choice that does not exist
	KindDuplicate  Kind = "duplicate"  // a key, id or variable given twice
	KindMissing    Kind = "missing"    // a required key
	KindType       Kind = "type"       // another JSON type than wanted
	KindValue      Kind = "value"      // the right type, but an invalid value
	KindExpression Kind = "expression" // a condition that cannot be parsed
	KindBound      Kind = "bound"      // an unbounded loop
	KindWarning    Kind = "warning"    // valid, but probably a mistake, or dropped
	KindAbsent     Kind = "absent"     // known, but not available on this host: a warning, until a run is started
)

// IsWarning reports whether a definition with the problem can be stored.
func (p Problem) IsWarning() bool { return p.Kind == KindWarning || p.Kind == KindAbsent }

// Errors returns the problems that are no warnings, and Warnings those that are.
func (ps Problems) Errors() Problems   { return ps.only(func(p Problem) bool { return !p.IsWarning() }) }
func (ps Problems) Warnings() Problems { return ps.only(Problem.IsWarning) }

func (ps Problems) only(keep func(Problem) bool) (out Problems) {
	for _, p := range ps {
		if keep(p) {
			out = append(out, p)
		}
	}
	return out
}

// Added returns the problems that before does not have. Two problems are the same if they
// have the same kind, message and field, wherever the step is: an edit may move it. Each
// problem of before accounts for one. A limit is always added: what lies behind it may differ.
func (ps Problems) Added(before Problems) (added, older Problems) {
	type key struct {
		kind           Kind
		message, field string
	}
	of := func(p Problem) key {
		return key{p.Kind, p.Message, p.Path[strings.LastIndexByte(p.Path, '.')+1:]}
	}
	known := make(map[key]int, len(before))
	for _, p := range before {
		known[of(p)]++
	}
	for _, p := range ps {
		if known[of(p)] == 0 || p.Kind == KindLimit {
			added = append(added, p)
			continue
		}
		known[of(p)]--
		older = append(older, p)
	}
	return added, older
}

// String returns "file:line:col: path: message", without the parts that are not known
// and without the hint.
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

// Problems are all problems of one text, sorted by position. Use [Problems.Err] to
// return them as an error, because an empty list is a non-nil error value.
type Problems []Problem

// Error returns one line for each problem of [Problems.Shown], with its hint indented on
// the next.
func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps.Shown() {
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

// Locate returns ps with the lines and columns of their paths in src, which may have
// aliases of the format and of types. A path that does not exist gets the position of the
// nearest value around it.
func (ps Problems) Locate(file string, src []byte, types *TypeSet) Problems {
	text, _ := parseDefinition(file, src)
	out := slices.Clone(ps)
	if text.Root == nil {
		return out
	}
	for i := range out {
		out[i].File = file
		out[i].Line, out[i].Column = text.Position(text.Root.Find(out[i].Path, types.otherNames).Start)
	}
	out.sort()
	return out
}

// Merge returns the problems of both lists, sorted by position.
func (ps Problems) Merge(more Problems) Problems {
	out := slices.Concat(ps, more)
	out.sort()
	return out
}

// sort orders by position; problems with the same position keep their order.
func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// MaxProblems is how many problems of a text are shown, and get hints that take time.
const MaxProblems = 100

// maxFound bounds the problems that one check of a text collects. Behind them is the error
// tooMany, so that a text which was not checked whole is never taken for valid.
const (
	maxFound = 10_000
	tooMany  = "there are more than 10000 problems; the rest is not checked"
)

// Shown returns the first [MaxProblems] problems, errors before warnings, sorted as before,
// and one more that counts the others.
func (ps Problems) Shown() Problems {
	if len(ps) <= MaxProblems+1 {
		return ps // one line more says no less than the count of one
	}
	errs := 0
	for _, p := range ps {
		if !p.IsWarning() {
			errs++
		}
	}
	errs = min(errs, MaxProblems)
	warnings := MaxProblems - errs
	out := make(Problems, 0, MaxProblems+1)
	more := Problem{Kind: KindWarning, Message: fmt.Sprintf("and %d more problems", len(ps)-MaxProblems), Hint: "they are listed when these are mended"}
	for _, p := range ps {
		left := &errs
		if p.IsWarning() {
			left = &warnings
		}
		if *left > 0 {
			*left--
			out = append(out, p)
			continue
		}
		more.File, more.Line, more.Column = p.File, p.Line, p.Column
		if !p.IsWarning() {
			more.Kind = KindLimit
		}
	}
	return append(out, more)
}

// Findings collects the problems of one check of a definition, within bounds of number and
// time.
type Findings struct {
	Problems Problems

	ctx    context.Context
	around int // problems of the checks that this one is part of
}

// NewFindings returns those of a check that ends with ctx.
func NewFindings(ctx context.Context) *Findings { return &Findings{ctx: ctx} }

// within returns the findings of a definition within the one that is checked.
func (f *Findings) within() *Findings {
	return &Findings{ctx: f.ctx, around: f.around + len(f.Problems)}
}

// Add adds a problem. Those behind a bound are replaced by one error.
func (f *Findings) Add(p Problem) {
	switch found := f.around + len(f.Problems); {
	case found > maxFound:
		return
	case found == maxFound:
		p = Problem{Path: p.Path, Kind: KindLimit, Message: tooMany}
	}
	f.Problems = append(f.Problems, p)
}

// Ended reports whether the check can stop: its context has ended, or there are too many
// problems.
func (f *Findings) Ended() bool { return f.around+len(f.Problems) > maxFound || f.ctx.Err() != nil }

// Suggests reports whether the next problem gets a hint that takes time.
func (f *Findings) Suggests() bool { return f.around+len(f.Problems) < MaxProblems }

// Suggest is the function [Suggest] for the next problem, nil if it gets no such hint.
func (f *Findings) Suggest(name string, candidates []string) []string {
	if !f.Suggests() {
		return nil
	}
	return Suggest(name, candidates)
}

var _ error = Problems(nil)
