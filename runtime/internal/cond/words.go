package cond

import "strings"

// globals are the names without a "$" that a condition may use besides those it
// declares itself. What gives another answer at another time (Date,
// Math.random) or turns data into code (eval, Function) is not here, and newVM
// removes it from the machine too.
var globals = set(`Array BigInt Boolean Error Infinity JSON Map Math NaN Number Object RangeError
	RegExp Set String Symbol TypeError decodeURI decodeURIComponent encodeURI encodeURIComponent
	isFinite isNaN parseFloat parseInt undefined`)

// keywords cannot be names, so a bare one is never a forgotten "$".
var keywords = set(`async await break case catch class const continue debugger default delete do else
	export extends false finally for function if import in instanceof let new null of return static
	super switch this throw true try typeof var void while with yield`)

// fastMethods are the calls of the fast lane. Each takes time and memory linear
// in its operands and hands no function on.
var fastMethods = set(`includes startsWith endsWith indexOf trim toLowerCase toUpperCase slice at`)

// wordHints say what to write instead of words that other languages have.
var wordHints = map[string]string{
	"and": "write && for and", "or": "write || for or", "not": "write ! for not",
	"is": "write === to compare", "eq": "write === to compare", "ne": "write !== to compare",
	"contains": "write $text.includes('part')", "matches": "write /pattern/.test($text)",
	"True": "write true", "False": "write false", "None": "write null", "nil": "write null",
	"Date":  "a condition has no clock: it must give the same answer when it is replayed",
	"eval":  "a condition cannot make code out of data",
	"await": "a condition has no promises", "Promise": "a condition has no promises",
	"Function": "a condition cannot make code out of data", "arguments": "name the parameters",
	"globalThis": "a condition sees its variables alone", "window": "a condition sees its variables alone",
	"process": "a condition sees its variables alone", "require": "a condition sees its variables alone",
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// hintFor is the hint for a name without a "$" that nothing declares.
func hintFor(name string) string {
	if h, ok := wordHints[name]; ok {
		return h
	}
	if isName(name) {
		return "did you mean $" + name
	}
	return ""
}

// isName reports whether s can be a variable: ASCII letters, digits and "_",
// no digit first.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !wordByte(s[i]) || s[i] == '$' || i == 0 && s[i] <= '9' {
			return false
		}
	}
	return s != ""
}

// wordByte reports whether c can be in an ASCII identifier.
func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
