package cond

import (
	"strings"
	"unicode/utf8"
)

// kind of a token of the fast lane.
type kind uint8

const (
	tokEnd    kind = iota
	tokWord        // an identifier or keyword, "$" names included
	tokNumber      // a plain decimal
	tokString
	tokMark  // an operator or bracket that the fast lane knows
	tokOther // the start of something that it does not
)

type token struct {
	kind kind
	text string
	at   int // byte offset
}

// marks are all operators that begin with a character of the fast lane's,
// longest first, so that "--" is never read as two minus signs nor "<<" as two
// comparisons. Only those in fastMarks are taken.
var marks = []string{
	">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=",
	"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=",
	"&=", "|=", "^=", "<<", ">>", "**", "//", "/*",
	"(", ")", "[", "]", "{", "}", ".", ",", ";", "?", ":", "=", "<", ">", "+", "-", "*", "/", "%", "!", "&", "|", "^", "~",
}

var fastMarks = set(`( ) [ ] . ?. , ? : ! + - * / % === !== == != < > <= >= && || ??`)

// lexer splits a source into tokens. It is exact for what the fast lane takes
// and gives tokOther, at once and without looking further, for all else.
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
	case wordByte(c):
		for end < len(l.src) && wordByte(l.src[end]) {
			end++
		}
		k = tokWord
		if end < len(l.src) && (l.src[end] == '\\' || l.src[end] >= utf8.RuneSelf) {
			k = tokOther // an identifier that goes on beyond ASCII
		}
	case c == '"' || c == '\'':
		k, end = l.text(at)
	default:
		for _, m := range marks {
			if strings.HasPrefix(l.src[at:], m) {
				end = at + len(m)
				if fastMarks[m] {
					k = tokMark
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

// number takes 0, 12, 1.5, 2e-3. Other forms (hex, a trailing or leading dot,
// separators, BigInt, old octal) are left to the child.
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
	if end < len(l.src) && (wordByte(l.src[end]) || l.src[end] == '\\' || l.src[end] >= utf8.RuneSelf) {
		return tokOther, end
	}
	return tokNumber, end
}

// text takes a string with the common escapes on one line.
func (l *lexer) text(at int) (kind, int) {
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
				if i >= len(l.src) || !hexDigit(l.src[i]) {
					return tokOther, min(i, len(l.src))
				}
			}
		}
	}
	return tokOther, len(l.src)
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
