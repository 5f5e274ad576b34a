package termtext

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text is text that a terminal may show as it is: constants of this program and
// foreign text that was escaped. It may hold the program's own colour sequences.
type Text string

// Line returns s as a part of one line: line feeds and tabs are escaped too.
func Line(s string) Text { return escape(s, "") }

// Block returns s as lines of their own: line feeds and tabs stay. Every line
// after the first starts with indent, so that no line of s can pass for a line
// that this program wrote. Line feeds at the end of s are dropped.
func Block(s, indent string) Text {
	s = strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	return Text(strings.ReplaceAll(string(escape(s, "\n\t")), "\n", "\n"+indent))
}

// Overwrite returns what a terminal leaves of s: of each line the part behind the last
// carriage return that has text behind it. Progress of a program becomes its last state.
func Overwrite(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}

// Sprintf formats like [fmt.Sprintf] and escapes every argument as [Line] does,
// except arguments of type Text. It replaces the elements of args.
func Sprintf(format string, args ...any) Text {
	for i := range args {
		args[i] = argument(args[i])
	}
	return Text(fmt.Sprintf(format, args...))
}

// Join joins parts as [strings.Join] does.
func Join(parts []Text, separator string) Text {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(string(p))
	}
	return Text(b.String())
}

// argument leaves alone what has no text of its own, so that it still works as
// a width.
func argument(v any) any {
	switch v.(type) {
	case nil, Text, escaped, bool, time.Duration, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return v
	}
	return escaped{v}
}

// escaped formats a value as package fmt does and escapes the result.
type escaped struct{ value any }

// Format implements [fmt.Formatter].
func (e escaped) Format(to fmt.State, verb rune) {
	// The error is the state's own and reaches the caller of the formatting function.
	_, _ = io.WriteString(to, string(Line(fmt.Sprintf(fmt.FormatString(to, verb), e.value))))
}

// escape escapes every unsafe character but those in keep.
func escape(s, keep string) Text {
	i, before := 0, rune(0)
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if (unsafeBehind(before, r) && !strings.ContainsRune(keep, r)) || r == utf8.RuneError && n == 1 {
			break
		}
		i, before = i+n, r
	}
	if i == len(s) {
		return Text(s)
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // a byte that is not UTF-8; terminals may read it as a C1 control
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unsafeBehind(before, r) && !strings.ContainsRune(keep, r):
			b.WriteString(spelling(r))
		default:
			b.WriteString(s[i : i+n])
		}
		i, before = i+n, r
	}
	return Text(b.String())
}

// spelling is the escape sequence of Go for a character.
func spelling(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// unsafe reports whether a character can steer a terminal, or change how the
// text around it is read without being seen itself.
func unsafe(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f: // C0, DEL, C1
		return true
	case r < 0x80:
		return false
	}
	return unicode.Is(invisible, r)
}

// IsBlank reports whether a character shows nothing: a space of any width, or one that is invisible.
func IsBlank(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Zs, invisible, joining)
}

// unsafeBehind is unsafe for a character behind another one. Joiners and variation selectors belong to
// emoji and to many scripts, and show nothing behind a letter of a file name or command.
func unsafeBehind(before, r rune) bool {
	switch {
	case !unicode.Is(joining, r):
		return unsafe(r)
	case r == 0xfe0f && strings.ContainsRune("0123456789#*", before): // a key cap
		return false
	}
	return before < 0x80 || unicode.In(before, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

var joining = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x200c, Hi: 0x200d, Stride: 1}, {Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}},
}

// invisible holds the line separators, the bidirectional controls, and the
// characters that show nothing by themselves, or a blank.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x061c, Hi: 0x061c, Stride: 1}, // Arabic letter mark
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian variation selectors and vowel separator
		{Lo: 0x200b, Hi: 0x200b, Stride: 1}, // zero width space
		{Lo: 0x200e, Hi: 0x200f, Stride: 1}, // left-to-right and right-to-left mark
		{Lo: 0x2028, Hi: 0x202e, Stride: 1}, // line and paragraph separator, embeddings and overrides
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // word joiner, isolates, deprecated controls
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // braille pattern without a dot
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // byte order mark
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // Hangul filler of half width
		{Lo: 0xfff0, Hi: 0xfffb, Stride: 1}, // reserved as invisible, interlinear annotations
	},
	R32: []unicode.Range32{
		{Lo: 0x13430, Hi: 0x13442, Stride: 1}, // joiners, brackets and blanks of hieroglyphs
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // Khitan filler
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1}, // controls of shorthand
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // musical null notehead
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1}, // controls of musical notes
		{Lo: 0xe0000, Hi: 0xe00ff, Stride: 1}, // tags (ASCII that is not shown), reserved as invisible
		{Lo: 0xe01f0, Hi: 0xe0fff, Stride: 1}, // reserved as invisible
	},
}
