package reference

import (
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// A Tested is a reference in a condition whose truthiness is tested, without a
// comparison: $done in `$done`, `!$done` and `$a > 1 && ($done || $b === 2)`.
type Tested struct {
	Text   string   // as written
	Name   string   // of the variable
	Fields []string // the path after it, without methods that return a string, such as trim
}

// TestedIn returns the references whose truthiness a condition tests. It handles
// the operators ! && || ?: and brackets, and returns nothing for a source that needs a
// JavaScript parser: it is used for warnings only.
func TestedIn(source string) []Tested {
	if strings.ContainsAny(source, "`/\\;{}") || strings.Contains(source, "=>") {
		return nil
	}
	var refs []Tested
	for _, operand := range truthOperands(source, nil, 0) {
		m := truthPattern.FindStringSubmatch(operand)
		if m == nil {
			continue
		}
		fields := strings.FieldsFunc(m[2], func(r rune) bool { return r == '.' || r == '?' })
		refs = append(refs, Tested{Text: operand, Name: m[1], Fields: fields})
	}
	return refs
}

// truthPattern matches a reference with a path of names.
var truthPattern = lazyregexp.New(`^\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*)*)(?:\??\.(?:trim|toLowerCase|toUpperCase)\(\))*$`)

// maxTruthDepth is the depth of nested brackets and choices that truthOperands visits.
const maxTruthDepth = 32

// truthOperands appends to list the operands that decide the truth of an expression.
func truthOperands(s string, list []string, depth int) []string {
	s = strings.TrimSpace(s)
	if depth > maxTruthDepth {
		return list
	}
	if test, rest, ok := cutOperator(s, "?"); ok {
		then, otherwise, _ := cutOperator(rest, ":")
		for _, part := range []string{test, then, otherwise} {
			list = truthOperands(part, list, depth+1)
		}
		return list
	}
	for _, operator := range []string{"||", "&&"} {
		if left, right, ok := cutOperator(s, operator); ok {
			return truthOperands(right, truthOperands(left, list, depth+1), depth+1)
		}
	}
	switch {
	case strings.HasPrefix(s, "!") && !strings.HasPrefix(s, "!="):
		return truthOperands(s[1:], list, depth+1)
	case strings.HasPrefix(s, "(") && closing(s, 0) == len(s)-1:
		return truthOperands(s[1:len(s)-1], list, depth+1)
	}
	return append(list, s)
}

// cutOperator cuts s around the first operator outside brackets and strings. "?." and
// "??" are not the operator "?", and ":" is the one of the outermost choice.
func cutOperator(s, operator string) (left, right string, found bool) {
	choices := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '"' || c == '(' || c == '[':
			i = closing(s, i)
		case strings.HasPrefix(s[i:], "?.") || strings.HasPrefix(s[i:], "??"):
			i++
		case operator == ":" && c == '?':
			choices++
		case operator == ":" && c == ':' && choices > 0:
			choices--
		case strings.HasPrefix(s[i:], operator):
			return s[:i], s[i+len(operator):], true
		}
	}
	return s, "", false
}

// closing returns the index of the end of the bracket or string that begins at
// s[start], len(s) if it has none.
func closing(s string, start int) int {
	if c := s[start]; c == '\'' || c == '"' {
		if n := strings.IndexByte(s[start+1:], c); n >= 0 {
			return start + 1 + n
		}
		return len(s)
	}
	for i := start + 1; i < len(s); i++ {
		switch s[i] {
		case '\'', '"', '(', '[':
			i = closing(s, i)
		case ')', ']':
			return i
		}
	}
	return len(s)
}
