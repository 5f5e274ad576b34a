package boundedregexp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

// alternatives returns a pattern of n alternatives with 1,800 instructions each.
func alternatives(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("x{0,900}y%d", i)
	}
	return strings.Join(list, "|")
}

// patterns are usual ones and odd ones, all within the limit.
var patterns = []string{
	``, `a`, `error`, `(?i)error|warning`, `^\s*func \(\w+ \*?(\w+)\) `, `\bTODO\b`, `[^\x00-\x{10FFFF}]`, `é+`, `\x{FFFD}b`, `x\x{FFFD}`, `foo`, `foo$`, `^foo`, `foo\b.`,
	`(?s)begin.*?end`, `(?s).{0,1000}q`, `\d{4}-\d{2}-\d{2}T[0-9:.]+Z?`, `(?m)^package (\w+)$`, `a{3}`, `a{3,}`, `a{0}`, `(?:)`, `(?:){3,20}`, `(?:a?){0,30}b`,
	`((((x*)*)*)*)*`, `(?:(?:x?){0,30}){0,30}q`, `(?:^){0,1000}a`, `[\p{L}\p{N}_]{1,64}@`, `(?:a|b|cd|)+`, `(?:a*)*`, `(?:a{2,5}){2,}?`, `\Qa.b\E+`, `x*`, alternatives(5),
}

func TestInstructionsAreThoseOfTheCompiler(t *testing.T) {
	for _, text := range patterns {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		r, err := Compile(text, MaxInstructions)
		if err != nil {
			t.Errorf("%.40q is refused: %v", text, err)
			continue
		}
		if n := len(program.Inst); r.Size() < n || r.Size() > 2*n+1000 {
			t.Errorf("%.40q: %d instructions, the compiler has %d", text, r.Size(), n)
		}
	}
}

func TestLargePatternsAreRefused(t *testing.T) {
	for _, text := range []string{alternatives(6), alternatives(400), `(?:(?:xyz){0,30}(?:abc){0,30}){0,33}(?:(?:xyz){0,30}(?:abc){0,30}){0,33}`, strings.Repeat(`.{0,1000}`, 100), strings.Repeat("x", MaxInstructions)} {
		_, err := Compile(text, MaxInstructions)
		if err == nil || !strings.Contains(err.Error(), "instructions, the limit is 10000: repeat less") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := Compile("a(", MaxInstructions); err == nil || !strings.Contains(err.Error(), "missing closing )") {
		t.Errorf("an invalid pattern: %v", err)
	}
}

// A text that is longer than what is matched at once has the same matches.
func TestLongTextsHaveTheSameMatches(t *testing.T) {
	pieces := []string{"foo", "begin\nwith end", "a", "aaa b", "\xff", "x\xff", "\ufffdb", "2026-01-02T03:04:05Z", "package main\n", "é", "\nfoo\nbar", "  func (r *R) M()", "xxxx@y4"}
	for i, first := range pieces {
		for _, filler := range []string{" ", "é", "\xff", "x\n"} {
			text := strings.Repeat(filler, 200) + first + strings.Repeat(filler, 3) + pieces[(i+1)%len(pieces)] + filler
			for _, pattern := range patterns {
				r, err := Compile(pattern, MaxInstructions)
				if err != nil {
					t.Fatal(err)
				}
				r.size = uninterrupted // one byte at once
				want := regexp.MustCompile(pattern).FindStringIndex(text)
				at, err := r.FindIndex(t.Context(), []byte(text))
				if err != nil || !reflect.DeepEqual(at, want) {
					t.Errorf("%.40q in %q: %v, %v, want %v", pattern, text, at, err, want)
				}
				inBytes, err := r.Match(t.Context(), []byte(text))
				if err != nil || inBytes != (want != nil) {
					t.Errorf("%.40q in %q: match %v, %v", pattern, text, inBytes, err)
				}
				inString, err := r.MatchString(t.Context(), text)
				if err != nil || inString != (want != nil) {
					t.Errorf("%.40q in %q: match of a string %v, %v", pattern, text, inString, err)
				}
			}
		}
	}
}

// counting is a context that ends when it has been looked at some times.
type counting struct {
	context.Context
	left int
}

func (c *counting) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A match whose context ends does at most the work that is done without a look at it.
func TestMatchingEndsWithItsContext(t *testing.T) {
	r, err := Compile(alternatives(5), MaxInstructions)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 8<<20) // an hour
	for name, match := range map[string]func(ctx context.Context) (any, error){
		"FindIndex": func(ctx context.Context) (any, error) {
			at, err := r.FindIndex(ctx, []byte(text))
			return at != nil, err
		},
		"Match":       func(ctx context.Context) (any, error) { return r.Match(ctx, []byte(text)) },
		"MatchString": func(ctx context.Context) (any, error) { return r.MatchString(ctx, text) },
	} {
		for looks := range 3 {
			if found, err := match(&counting{context.Background(), looks}); !errors.Is(err, context.Canceled) || found != false {
				t.Errorf("%s, after %d looks: %v, %v", name, looks, found, err)
			}
		}
	}
}
