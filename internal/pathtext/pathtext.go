// Package pathtext writes names of files as text and back without loss.
//
// Events, variables and results are JSON, whose strings are UTF-8. A name of a file on a
// Unix system is bytes. So a byte of a name that is not UTF-8 is written as one character of
// a range that no alphabet has: U+10FF00 plus the byte, U+10FF80 to U+10FFFF. A name that is
// UTF-8 is written as it is, unless it has a character of that range, whose bytes are then
// written so, too. Clause T7.5 of triggers/TRIGGERS.md describes it for users.
package pathtext

import (
	"strings"
	"unicode/utf8"
)

// base is the character of byte 0, which is never written: bytes below 0x80 are UTF-8.
const base = 0x10FF00

// first is the first character that stands for a byte. It and all after it do so.
const first = base + utf8.RuneSelf

// Encode returns a name as valid UTF-8, from which [Decode] makes the same bytes.
func Encode(name string) string {
	if utf8.ValidString(name) && !has(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || r >= first {
			for _, c := range []byte(name[i : i+n]) {
				b.WriteRune(base + rune(c))
			}
		} else {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Decode returns the bytes of a name that [Encode] has written. Text without the
// characters of Encode stays as it is.
func Decode(text string) string {
	if !has(text) {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r >= first {
			b = append(b, byte(r-base))
		} else {
			b = append(b, text[i:i+n]...)
		}
		i += n
	}
	return string(b)
}

// has reports whether a text has a character that stands for a byte.
func has(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= first })
}
