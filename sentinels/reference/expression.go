package reference

import "strings"

// NamesInExpression returns the names of the variables in the source of a
// condition, each once, in the order of their first use. It recognizes JavaScript's
// strings and comments, but does not parse the source: use it for warnings and for
// selecting the variables to pass in, not for validation.
func NamesInExpression(source string) []string {
	var names []string
	seen := map[string]bool{}
	scanExpression(source, func(word string, _ int, property bool) {
		name := strings.TrimPrefix(word, "$")
		if !property && name != word && IsName(name) && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	})
	return names
}

// MarkVariables adds "$" to the words of a condition that are variables: recipes have
// `decision.shouldRespond` where a definition has `$decision.shouldRespond`.
func MarkVariables(source string, variable func(string) bool) string {
	var b strings.Builder
	at := 0
	scanExpression(source, func(word string, start int, property bool) {
		if !property && variable(word) {
			b.WriteString(source[at:start])
			b.WriteByte('$')
			at = start
		}
	})
	b.WriteString(source[at:])
	return b.String()
}

// scanExpression calls f for every word of a JavaScript source outside strings
// and comments. property is true if the word follows a ".".
func scanExpression(source string, f func(word string, start int, property bool)) {
	wordByte := func(c byte) bool { return c == '$' || nameByte(c, false) }
	dot := false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '"' || c == '\'':
			for i++; i < len(source) && source[i] != c; i++ {
				if source[i] == '\\' {
					i++
				}
			}
			dot = false
		case c == '/' && strings.HasPrefix(source[i:], "//"):
			for i < len(source) && source[i] != '\n' {
				i++
			}
		case c == '/' && strings.HasPrefix(source[i:], "/*"):
			end := strings.Index(source[i+2:], "*/")
			if end < 0 {
				return
			}
			i += end + 3
		case c == '\\':
			i++
		case wordByte(c):
			start := i
			for i+1 < len(source) && wordByte(source[i+1]) {
				i++
			}
			f(source[start:i+1], start, dot)
			dot = false
		case c == '.':
			dot = i+2 >= len(source) || source[i:min(i+3, len(source))] != "..."
			if !dot {
				i += 2
			}
		case c != ' ' && c != '\n' && c != '\t' && c != '\r':
			dot = false
		}
	}
}
