package cond

import (
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	tokEnd    kind = iota
	tokWord        // an identifier or keyword, "$" names included
	tokNumber      // a decimal number
	tokString
	tokOperator // an operator or bracket of the fast path
	tokOther    // the start of anything else
)

type token struct {
	kind kind
	text string
	at   int // byte offset
}

// operators are all operators that begin with a character of the fast path,
// longest first, so that "--" is not read as two minus signs nor "<<" as two
// comparisons. Only those in fastOperators are accepted.
var operators = []string{
	">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=",
	"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=",
	"&=", "|=", "^=", "<<", ">>", "**", "//", "/*",
	"(", ")", "[", "]", "{", "}", ".", ",", ";", "?", ":", "=", "<", ">", "+", "-", "*", "/", "%", "!", "&", "|", "^", "~",
}

var fastOperators = set(`( ) [ ] . ?. , ? : ! + - * / % === !== == != < > <= >= && || ??`)

// lexer splits a source into tokens. It is exact for the tokens of the fast
// path. For all others it returns tokOther without looking further.
type lexer struct {
	src string
	pos int
}

func (l *lexer) next() token {
	for l.pos < len(l.src) && strings.IndexByte(" \t\r\n", l.src[l.pos]) >= 0 {
		l.pos++
	}
	at := l.pos
	if at == len(l.src) {
		return token{tokEnd, "", at}
	}
	k := tokOther
	end := at + 1
	switch c := l.src[at]; {
	case c >= '0' && c <= '9':
		k, end = l.number(at)
	case isWordByte(c):
		for end < len(l.src) && isWordByte(l.src[end]) {
			end++
		}
		k = tokWord
		if end < len(l.src) && (l.src[end] == '\\' || l.src[end] >= utf8.RuneSelf) {
			k = tokOther // an identifier with characters beyond ASCII
		}
	case c == '"' || c == '\'':
		k, end = l.stringLiteral(at)
	default:
		for _, m := range operators {
			if strings.HasPrefix(l.src[at:], m) {
				end = at + len(m)
				if fastOperators[m] {
					k = tokOperator
				}
				break
			}
		}
		if c == '.' && end < len(l.src) && l.src[end] >= '0' && l.src[end] <= '9' {
			k = tokOther // .5
		}
		if l.src[at:end] == "?." && end < len(l.src) && l.src[end] >= '0' && l.src[end] <= '9' {
			k = tokOther // JavaScript reads "a?.5:1" as a conditional
		}
	}
	l.pos = end
	return token{k, l.src[at:end], at}
}

// number parses 0, 12, 1.5, 2e-3. Other forms (hexadecimal, a trailing or
// leading dot, separators, BigInt, old octal) need a child.
func (l *lexer) number(at int) (kind, int) {
	end := at
	digits := func() bool {
		from := end
		for end < len(l.src) && l.src[end] >= '0' && l.src[end] <= '9' {
			end++
		}
		return end > from
	}
	digits()
	if l.src[at] == '0' && end > at+1 {
		return tokOther, end
	}
	if end < len(l.src) && l.src[end] == '.' {
		end++
		if !digits() {
			return tokOther, end
		}
	}
	if end < len(l.src) && (l.src[end] == 'e' || l.src[end] == 'E') {
		end++
		if end < len(l.src) && (l.src[end] == '+' || l.src[end] == '-') {
			end++
		}
		if !digits() {
			return tokOther, end
		}
	}
	if end < len(l.src) && (isWordByte(l.src[end]) || l.src[end] == '\\' || l.src[end] >= utf8.RuneSelf) {
		return tokOther, end
	}
	return tokNumber, end
}

// stringLiteral parses a string on one line, with the common escapes.
func (l *lexer) stringLiteral(at int) (kind, int) {
	quote := l.src[at]
	for i := at + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == quote:
			return tokString, i + 1
		case c == '\n' || c == '\r':
			return tokOther, i
		case strings.HasPrefix(l.src[i:], "\u2028") || strings.HasPrefix(l.src[i:], "\u2029"):
			return tokOther, i
		case c == '\\':
			i++
			digits := 0
			if i < len(l.src) {
				switch l.src[i] {
				case 'n', 't', 'r', 'b', 'f', 'v', '\\', '\'', '"', '/':
				case 'x':
					digits = 2
				case 'u':
					digits = 4
				default:
					return tokOther, i
				}
			}
			for ; digits > 0; digits-- {
				i++
				if i >= len(l.src) || !isHexDigit(l.src[i]) {
					return tokOther, min(i, len(l.src))
				}
			}
		}
	}
	return tokOther, len(l.src)
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
