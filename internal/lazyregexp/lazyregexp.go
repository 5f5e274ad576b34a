// Package lazyregexp has regular expressions that are compiled when they are first
// used. Most invocations of the program use none of them, and to compile all of them
// at the start took longer than to execute the verb.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression that is compiled when it is first used. Its methods
// are those of [regexp.Regexp], and panic if the expression is invalid.
//
// # Concurrency
//
// Every method is safe for concurrent use.
type Regexp struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New returns a Regexp. A variable of a package that is initialized with it costs
// nothing at the start of the process, because the compiler lays it out as data.
func New(text string) *Regexp { return &Regexp{text: text} }

// compiled returns the compiled expression.
func (r *Regexp) compiled() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.text) })
	return r.re
}

// String returns the text of the expression.
func (r *Regexp) String() string { return r.text }

func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }

func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	return r.compiled().FindAllSubmatch(b, n)
}

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(s, n)
}

func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}

func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, with)
}
