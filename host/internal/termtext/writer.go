package termtext

import (
	"io"
	"unicode/utf8"
)

// NewWriter returns a writer that escapes what is written to it as [Block] does,
// without indenting. It is for output of other programs; one goroutine uses it.
// A character that is split between two writes is written with the second one.
func NewWriter(to io.Writer) io.Writer { return &writer{to: to} }

type writer struct {
	to   io.Writer
	held []byte // the beginning of a character, at most 3 bytes
}

// Write implements [io.Writer].
func (w *writer) Write(text []byte) (int, error) {
	all := append(w.held, text...)
	n := whole(all)
	w.held = append([]byte(nil), all[n:]...)
	if _, err := io.WriteString(w.to, string(escape(string(all[:n]), "\n\t"))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// whole returns the length of text without an incomplete character at its end.
func whole(text []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		last := text[len(text)-i:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return len(text) - i
			}
			break
		}
	}
	return len(text)
}

var _ io.Writer = (*writer)(nil)
