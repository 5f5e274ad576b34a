package sentinels

import (
	"regexp"
	"slices"
	"strings"
)

// A truthRef is a reference in a condition whose truthiness is tested, without a
// comparison: $done in `$done`, `!$done` and `$a > 1 && ($done || $b === 2)`.
type truthRef struct {
	text   string   // as written
	name   string   // of the variable
	fields []string // the path after it, without methods that return a string, such as trim
}

// truthReferences returns the references whose truthiness a condition tests. It handles
// the operators ! && || ?: and brackets, and returns nothing for a source that needs a
// JavaScript parser: it is used for warnings only.
func truthReferences(source string) []truthRef {
	if strings.ContainsAny(source, "`/\\;{}") || strings.Contains(source, "=>") {
		return nil
	}
	var refs []truthRef
	for _, operand := range truthOperands(source, nil, 0) {
		m := truthPattern.FindStringSubmatch(operand)
		if m == nil {
			continue
		}
		fields := strings.FieldsFunc(m[2], func(r rune) bool { return r == '.' || r == '?' })
		refs = append(refs, truthRef{text: operand, name: m[1], fields: fields})
	}
	return refs
}

// truthPattern matches a reference with a path of names.
var truthPattern = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*)*)(?:\??\.(?:trim|toLowerCase|toUpperCase)\(\))*$`)

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

// shellCommand is the command whose result is that of a shell line.
const shellCommand = "code/shell/execute"

// result is what is known about the value of a variable.
type result int

const (
	resultStep     result = iota // the output of a step: "text" is a string
	resultShell                  // the output of a shell line: "output" and "stderr" are strings too
	resultBoolText               // a string that is used as a boolean
)

// resultOf returns what is known about the output of a step.
func (c *checker) resultOf(s *Step) result {
	spec, ok := c.types.Lookup(s.Type)
	if !ok {
		return resultStep
	}
	for _, mark := range spec.Marks() {
		if mark.Mark == markShell || mark.Mark == markParams && Text(s.Fields["command"]) == shellCommand {
			return resultShell
		}
	}
	return resultStep
}

// setResult records what is known about a variable. If several steps set it, it keeps
// what is true for all of them.
func (c *checker) setResult(name string, r result) {
	if before, ok := c.results[name]; ok && before != r {
		r = resultStep
	}
	c.results[name] = r
}

// booleanTexts records the inputs that are declared as string and have the value 'true'
// or 'false'.
func (c *checker) booleanTexts(inputs map[string]Input) {
	for name, in := range inputs {
		values := append(slices.Clone(in.Enum), in.Default)
		for _, v := range values {
			if in.Type == "string" && (string(v) == `"true"` || string(v) == `"false"`) {
				c.results[name] = resultBoolText
			}
		}
	}
}

// truthiness warns about a condition that tests a string: 'false' is true, like every
// string that is not empty.
func (c *checker) truthiness(path, source string) {
	for _, ref := range truthReferences(source) {
		r, known := c.results[ref.name]
		field := strings.Join(ref.fields, ".")
		switch {
		case !known:
		case field == "" && r == resultBoolText:
			c.warn(path, "write "+ref.text+` === 'true', or declare the input with type "boolean"`,
				"%s is a text, and every text that is not empty is true, also 'false'", ref.text)
		case field == "" && r == resultShell:
			c.warn(path, "write "+ref.text+".success, or "+ref.text+".output.trim() === 'true'",
				"%s is an object, the result of a shell line, and every object is true", ref.text)
		case field == "text":
			c.warn(path, "write "+ref.text+" === 'true', or "+ref.text+" !== '' to accept any text",
				"%s is a text, and every text that is not empty is true, also 'false'", ref.text)
		case (field == "output" || field == "stderr") && r == resultShell:
			trimmed := strings.TrimSuffix(ref.text, ".trim()") + ".trim()"
			c.warn(path, "write "+trimmed+" === 'true', or "+trimmed+" !== '' to accept any text",
				"%s is a text, and every text that is not empty is true, also 'false'", ref.text)
		}
	}
}
