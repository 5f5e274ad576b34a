package termtext

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns a JSON text with other spellings inside its strings; every value
// stays the same. Characters that [Line] would escape are written as \uXXXX,
// because package encoding/json leaves C1 and bidirectional controls raw. The
// characters <, > and & are written as they are, because other programs' HTML
// escapes make shell lines and definitions hard to read. Bytes that are not UTF-8
// become \ufffd, which is what a decoder makes of them.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r == '\\' || r == utf8.RuneError || unsafe(r) && r != '\n' }) {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); {
		if text[i] == '\\' && i+1 < len(text) { // only inside strings
			n := 2
			if r, ok := htmlEscape(text[i:]); ok {
				out, n = append(out, r), len(`\u003c`)
			} else {
				out = append(out, text[i:i+2]...)
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case unsafe(r) && r != '\n' && r != '\t' && r != '\r': // those three are space between values
			out = appendJSONEscape(out, r)
		default:
			out = append(out, text[i:i+n]...)
		}
		i += n
	}
	return out
}

// htmlEscape reads an escape of <, > or & at the beginning of text.
func htmlEscape(text []byte) (byte, bool) {
	if len(text) < len(`\u003c`) {
		return 0, false
	}
	switch string(bytes.ToLower(text[:len(`\u003c`)])) {
	case `\u003c`:
		return '<', true
	case `\u003e`:
		return '>', true
	case `\u0026`:
		return '&', true
	}
	return 0, false
}

func appendJSONEscape(out []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}
