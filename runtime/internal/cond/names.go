package cond

import "strings"

// globals are the names without "$" that a condition may use besides those that
// it declares. Everything that changes with time (Date, Math.random) or turns
// data into code (eval, Function) is missing here, and newVM removes it.
var globals = set(`Array BigInt Boolean Error Infinity JSON Map Math NaN Number Object RangeError
	RegExp Set String Symbol TypeError decodeURI decodeURIComponent encodeURI encodeURIComponent
	isFinite isNaN parseFloat parseInt undefined`)

// keywords cannot be names, so one without "$" is not a variable whose "$" was
// forgotten.
var keywords = set(`async await break case catch class const continue debugger default delete do else
	export extends false finally for function if import in instanceof let new null of return static
	super switch this throw true try typeof var void while with yield`)

// fastMethods are the methods of the fast path. Each takes time and memory
// linear in its operands and returns no function.
var fastMethods = set(`includes startsWith endsWith indexOf trim toLowerCase toUpperCase slice at`)

// wordHints are hints for words that other languages have.
var wordHints = map[string]string{
	"and": "write && for and", "or": "write || for or", "not": "write ! for not",
	"is": "write === to compare", "eq": "write === to compare", "ne": "write !== to compare",
	"contains": "write $text.includes('part')", "matches": "write /pattern/.test($text)",
	"True": "write true", "False": "write false", "None": "write null", "nil": "write null",
	"Date":  "an expression has no clock, because it must give the same answer when it is replayed; use $NOW, a text in RFC 3339, or $ELAPSED_MS",
	"eval":  "an expression cannot make code out of data",
	"await": "an expression has no promises", "Promise": "an expression has no promises",
	"Function": "an expression cannot make code out of data", "arguments": "name the parameters",
	"globalThis": "an expression sees its variables alone", "window": "an expression sees its variables alone",
	"process": "an expression sees its variables alone", "require": "an expression sees its variables alone",
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// hintFor returns the hint for an unknown name without "$".
func hintFor(name string) string {
	if h, ok := wordHints[name]; ok {
		return h
	}
	if isName(name) {
		return "did you mean $" + name + "? A variable is written with $"
	}
	return ""
}

// isName reports whether s can be the name of a variable: ASCII letters, digits
// and "_", not beginning with a digit.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isWordByte(s[i]) || s[i] == '$' || i == 0 && s[i] <= '9' {
			return false
		}
	}
	return s != ""
}

// isWordByte reports whether c can be in an ASCII identifier.
func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
