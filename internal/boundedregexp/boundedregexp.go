// Package boundedregexp has regular expressions for patterns that others write: users,
// models, agents, and the authors of plugins and of acceptance criteria.
//
// The matcher of package regexp needs time proportional to the length of the text times the
// size of the compiled pattern, and nothing ends it early: 1 KB such as x{0,900}y0|x{0,900}y1|…
// compiles to 170,000 instructions, which take hours for a file of some megabytes. Here
// [Compile] refuses large programs, and matching ends with its context.
package boundedregexp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxInstructions is the limit of [Compile] for a pattern that matches under a context. All
// patterns have fewer that do not repeat a part hundreds of times in several places: a
// character is one instruction, (?s).{0,1000} is 2,001.
const MaxInstructions = 10_000

// uninterrupted is the work that is done without a look at the context, as instructions
// times bytes: 0.2 s for the slowest patterns, which need 25 ns for one.
const uninterrupted = 8 << 20

// A Regexp is a compiled pattern within a limit.
//
// # Concurrency
//
// Every method is safe for concurrent use.
type Regexp struct {
	re     *regexp.Regexp
	size   int
	prefix []byte // begins each match
}

// Compile compiles a pattern in the syntax of package regexp. One that compiles to more
// than most instructions is an error that names both numbers and what to do.
func Compile(text string, most int) (*Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := cost(parsed)
	if size > most {
		return nil, fmt.Errorf("the pattern compiles to %d instructions, the limit is %d: repeat less, such as x* in place of x{0,900}, or use several patterns", size, most)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &Regexp{re: re, size: size, prefix: prefix(parsed)}, nil
}

// prefix returns a text with which each match begins, which may be empty.
func prefix(re *syntax.Regexp) []byte {
	if re.Op == syntax.OpConcat {
		re = re.Sub[0]
	}
	// U+FFFD also matches each byte that is not UTF-8.
	if re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 || slices.Contains(re.Rune, utf8.RuneError) {
		return nil
	}
	return []byte(string(re.Rune))
}

// Instructions returns how many instructions a pattern compiles to, without compiling it: a
// program of millions takes seconds and a gigabyte. It is at least the number of the
// compiler, which merges some instructions, and counts four ranges of a class such as \pL as
// one, for their memory. The error is that of the syntax.
func Instructions(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return cost(parsed), nil
}

func cost(re *syntax.Regexp) int {
	return instructions(re) + ranges(re)/4 + 2 // the first and the last of each program
}

// ranges returns the number of ranges in classes. Repetitions share them.
func ranges(re *syntax.Regexp) int {
	n := 0
	if re.Op == syntax.OpCharClass {
		n = len(re.Rune) / 2
	}
	for _, sub := range re.Sub {
		n += ranges(sub)
	}
	return n
}

// instructions returns the number of instructions without the first and the last.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpConcat:
		return max(n, 1)
	case syntax.OpAlternate:
		return n + len(re.Sub)
	case syntax.OpRepeat: // its content is copied that many times
		if re.Max < 0 { // x{n,} is x{n-1}x+
			return n*max(re.Min, 1) + 2
		}
		return max(n*re.Max+re.Max-re.Min, 1)
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return n + 2
	}
	return 1
}

// Size returns the number of instructions.
func (r *Regexp) Size() int { return r.size }

// Uninterrupted returns how many bytes of text are matched without a look at the context,
// and therefore at full speed: one who can match a longer text in parts should.
func (r *Regexp) Uninterrupted() int { return max(uninterrupted/r.size, 1) }

// String returns the pattern.
func (r *Regexp) String() string { return r.re.String() }

// Match reports whether a text has a match. The error is that of ctx.
func (r *Regexp) Match(ctx context.Context, text []byte) (bool, error) {
	if len(text) > r.Uninterrupted() {
		at, err := r.FindIndex(ctx, text)
		return at != nil, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return r.re.Match(text), nil
}

// MatchString is Match for a string.
func (r *Regexp) MatchString(ctx context.Context, text string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if len(text) > r.Uninterrupted() {
		at, err := r.slowly(ctx, strings.NewReader(text))
		return at != nil, err
	}
	return r.re.MatchString(text), nil
}

// FindIndex returns where the leftmost match of a text begins and ends, nil if there is
// none. The error is that of ctx.
func (r *Regexp) FindIndex(ctx context.Context, text []byte) ([]int, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(text) <= r.Uninterrupted() {
		return r.re.FindIndex(text), nil
	}
	begin := bytes.Index(text, r.prefix) // the matcher does so too, but not with a reader
	if begin < 0 {
		return nil, nil
	}
	at, err := r.slowly(ctx, bytes.NewReader(text[begin:]))
	if at != nil && begin > 0 {
		at[0], at[1] = at[0]+begin, at[1]+begin
	}
	return at, err
}

// slowly finds the leftmost match with a reader, which is the only way to end the matcher:
// it takes an error of the reader for the end of the text.
func (r *Regexp) slowly(ctx context.Context, text io.RuneReader) ([]int, error) {
	own := &reader{text: text, ctx: ctx, every: r.Uninterrupted()}
	at := r.re.FindReaderIndex(own)
	if own.err != nil {
		return nil, own.err
	}
	return at, nil
}

// A reader reads a text until a context ends.
type reader struct {
	text  io.RuneReader
	ctx   context.Context
	every int // runes between two looks at the context
	left  int // of them
	err   error
}

func (r *reader) ReadRune() (rune, int, error) {
	if r.left--; r.left < 0 {
		if r.err = r.ctx.Err(); r.err != nil {
			return 0, 0, r.err
		}
		r.left = r.every
	}
	return r.text.ReadRune()
}
