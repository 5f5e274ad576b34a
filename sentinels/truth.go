package sentinels

import (
	"regexp"
	"slices"
	"strings"
)

// A truthRef is a reference in a condition that is tested as it is, without a
// comparison: $done in `$done`, `!$done` and `$a > 1 && ($done || $b === 2)`.
type truthRef struct {
	text   string   // as written
	name   string   // of the variable
	fields []string // the path behind it; a string method that gives text again is no part of it
}

// truthReferences returns the references that a condition tests as they are. It
// knows the operators ! && || ?: and brackets, and says nothing about a source
// with anything that needs a parser of JavaScript: it is for warnings.
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

// truthPattern is a reference with a path of names.
var truthPattern = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*)*)(?:\??\.(?:trim|toLowerCase|toUpperCase)\(\))*$`)

// maxTruthDepth is how deep truthOperands looks into brackets and choices.
const maxTruthDepth = 32

// truthOperands adds to list the parts of an expression whose truth is its own.
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

// cutOperator cuts s around the first operator outside brackets and strings. The
// operator "?" is neither "?." nor "??", and ":" is the one that belongs to s.
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

// closing returns the index of what closes the bracket or string that begins at
// s[start], len(s) if nothing does.
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

// result is what is known of the value of a variable.
type result int

const (
	resultStep  result = iota // the output of a step: text is a text
	resultShell               // that of a shell line: output and stderr are texts too
	resultWord                // a text that is meant to be a boolean
)

// resultOf returns what is known of the output of a step.
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

// note keeps what is known of a variable; of one that several steps set, what
// all of them give.
func (c *checker) note(name string, r result) {
	if before, ok := c.results[name]; ok && before != r {
		r = resultStep
	}
	c.results[name] = r
}

// words notes the inputs that are declared as text and take 'true' or 'false'.
func (c *checker) words(inputs map[string]Input) {
	for name, in := range inputs {
		values := append(slices.Clone(in.Enum), in.Default)
		for _, v := range values {
			if in.Type == "string" && (string(v) == `"true"` || string(v) == `"false"`) {
				c.results[name] = resultWord
			}
		}
	}
}

// truth warns of a condition that takes a text for true or false: 'false' is
// true, like every text that is not empty.
func (c *checker) truth(path, source string) {
	for _, ref := range truthReferences(source) {
		r, known := c.results[ref.name]
		field := strings.Join(ref.fields, ".")
		switch {
		case !known:
		case field == "" && r == resultWord:
			c.warn(path, "write "+ref.text+` === 'true', or declare the input with type "boolean"`,
				"%s is a text, and every text that is not empty is true, also 'false'", ref.text)
		case field == "" && r == resultShell:
			c.warn(path, "write "+ref.text+".success, or "+ref.text+".output.trim() === 'true'",
				"%s is an object, the result of a shell line, and every object is true", ref.text)
		case field == "text":
			c.warn(path, "write "+ref.text+" === 'true', or "+ref.text+" !== '' if any text will do",
				"%s is a text, and every text that is not empty is true, also 'false'", ref.text)
		case (field == "output" || field == "stderr") && r == resultShell:
			trimmed := strings.TrimSuffix(ref.text, ".trim()") + ".trim()"
			c.warn(path, "write "+trimmed+" === 'true', or "+trimmed+" !== '' if any text will do",
				"%s is a text, and every text that is not empty is true, also 'false'", ref.text)
		}
	}
}
