package shell

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/redact"
)

// maxLine bounds one line, in bytes; the rest of a longer one is the next line.
const maxLine = 32 << 10

// maxEscape is the longest usual escape sequence that sets colors or moves the cursor, in
// bytes, and more.
const maxEscape = 64

// splitter cuts the bytes of one stream into whole lines, and removes secrets from them.
type splitter struct {
	redact *redact.Redactor
	rest   []byte // of a line that has not ended
	zeros  int64  // zero bytes that came
	out    []byte // lines that were looked at one by one
	lines  int    // of out
	shown  []byte // what mayHaveSecrets looks at
}

// emitLines takes lines, which are valid until it returns. The last one has a line end too, unless
// it is open: then it is the beginning of a longer line, or the end of the stream.
type emitLines func(text []byte, lines int, open bool)

// push takes what was read and calls emit with the lines that are complete.
func (s *splitter) push(data []byte, emit emitLines) {
	s.zeros += int64(bytes.Count(data, []byte{0}))
	end := bytes.LastIndexByte(data, '\n') + 1
	if end > 0 {
		text := data[:end]
		if len(s.rest) > 0 {
			s.rest = append(s.rest, text...)
			text = s.rest
		}
		if !hasLonger(text, maxLine) && !s.mayHaveSecrets(text) {
			emit(text, linesOf(text, false), false)
		} else {
			s.each(text, emit)
		}
		s.rest = s.rest[:0]
	}
	s.rest = append(s.rest, data[end:]...)
	s.rest = append(s.rest[:0], s.long(s.rest, emit)...)
}

// hasLonger reports whether a line of text has more bytes than most. It looks at few bytes of a text
// with short lines.
func hasLonger(text []byte, most int) bool {
	for len(text) > most {
		i := bytes.LastIndexByte(text[:most+1], '\n')
		if i < 0 {
			return true
		}
		text = text[i+1:]
	}
	return false
}

// mayHaveSecrets reports whether [splitter.kept] changes a line of a text. Most text has no secrets, and
// a look at many lines at once costs less than one at each.
func (s *splitter) mayHaveSecrets(text []byte) bool {
	if !s.redact.Active() {
		return false
	}
	if s.redact.Has(text) {
		return true
	}
	if plain(text) {
		return false
	}
	s.shown = s.shown[:0]
	for line := range bytes.Lines(text) {
		s.shown = append(append(s.shown, clean(bytes.TrimSuffix(line, []byte{'\n'}))...), '\n')
	}
	return s.redact.Has(s.shown)
}

// each gives out lines that have to be looked at one by one.
func (s *splitter) each(text []byte, emit emitLines) {
	for line := range bytes.Lines(text) {
		line = s.long(line[:len(line)-1], emit)
		s.add(s.kept(line))
		s.out = append(s.out, '\n')
	}
	s.emit(false, emit)
}

// add appends a line to what is given out.
func (s *splitter) add(line string) {
	s.out = append(s.out, line...)
	s.lines++
}

// emit gives out the lines that were added.
func (s *splitter) emit(open bool, emit emitLines) {
	if s.lines > 0 {
		emit(s.out, s.lines, open)
	}
	s.out, s.lines = s.out[:0], 0
}

// long gives out what exceeds the length of a line, and returns the rest.
func (s *splitter) long(line []byte, emit emitLines) []byte {
	for len(line) > maxLine {
		end := maxLine
		for end > maxLine-utf8.UTFMax && !utf8.RuneStart(line[end]) {
			end--
		}
		// The two parts of an escape sequence would become text.
		if i := bytes.LastIndexByte(line[end-maxEscape:end], 0x1b); i >= 0 {
			end -= maxEscape - i
		}
		text, begun := s.begin(line[:end])
		if text != "" {
			s.add(text)
			s.emit(true, emit)
		}
		line = append([]byte(begun), line[end:]...)
	}
	return line
}

// flush gives out a last line that has no line feed.
func (s *splitter) flush(emit emitLines) {
	if len(s.rest) > 0 {
		if text := s.kept(s.rest); text != "" {
			s.add(text)
		}
		s.emit(true, emit)
		s.rest = nil
	}
}

// kept is a line as it is kept: its bytes, without secrets. Control characters in the middle of a
// secret hide it, and a reader removes them: such a line is kept as [clean] leaves it.
func (s *splitter) kept(line []byte) string {
	raw := string(line)
	if !s.redact.Active() {
		return raw
	}
	shown := clean(line)
	without := s.redact.String(raw)
	if shown == raw || clean([]byte(without)) == s.redact.String(shown) {
		return without
	}
	return s.redact.String(shown)
}

// begin is kept for the beginning of a line. rest is what may be the beginning of a secret.
func (s *splitter) begin(line []byte) (kept, rest string) {
	raw := string(line)
	if !s.redact.Active() {
		return raw, ""
	}
	shown := clean(line)
	kept, rest = s.redact.Begin(raw)
	if shown == raw {
		return kept, rest
	}
	cleanKept, cleanRest := s.redact.Begin(shown)
	if clean([]byte(kept)) == cleanKept && clean([]byte(rest)) == cleanRest {
		return kept, rest
	}
	return cleanKept, cleanRest
}

// clean makes a line fit to read and to store: without terminal escapes and
// control characters, and valid UTF-8. Carriage returns stay: in the data of a program they
// are data. [termtext.Overwrite] leaves out what they overwrite on a terminal.
func clean(line []byte) string {
	if plain(line) && bytes.IndexByte(line, '\n') < 0 {
		return string(line)
	}
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = termtext.Strip(line, false)
	}
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if strings.IndexFunc(text, control) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, text)
}

// plain reports whether [clean] leaves all lines of a text as they are.
func plain(text []byte) bool {
	const low, high = 0x7f7f7f7f7f7f7f7f, 0x8080808080808080
	var seen byte
	rest := text
	for ; len(rest) >= 8; rest = rest[8:] {
		// Of eight bytes at a time: the high bit of each that is a letter, a digit, a sign or a line feed.
		x := binary.LittleEndian.Uint64(rest)
		feed := x ^ 0x0a0a0a0a0a0a0a0a
		other := (feed&low + low) | feed          // not a line feed
		text := (x&low + 0x6060606060606060) &^ x // 0x20 to 0x7f
		del := x&low + 0x0101010101010101         // 0x7f, and 0xff
		if (text&^del|^other)&high == high {
			continue
		}
		for _, c := range rest[:8] {
			seen |= steering[c]
		}
	}
	for _, c := range rest {
		seen |= steering[c]
	}
	switch {
	case seen&isControl != 0:
		return false
	case seen&isWide == 0:
		return true
	}
	return utf8.Valid(text) && !bytes.Contains(text, []byte("\u2028")) && !bytes.Contains(text, []byte("\u2029")) && !hasC1(text)
}

// hasC1 reports whether valid UTF-8 has a control character of two bytes.
func hasC1(text []byte) bool {
	for {
		i := bytes.IndexByte(text, 0xc2)
		if i < 0 {
			return false
		}
		if text[i+1] <= 0x9f {
			return true
		}
		text = text[i+2:]
	}
}

// steering says of each byte whether it is a control character, or a part of a character that has
// several bytes, which may be one.
var steering = func() (t [256]byte) {
	for c := range t {
		switch {
		case c >= 0x80:
			t[c] = isWide
		case c != '\n' && control(rune(c)):
			t[c] = isControl
		}
	}
	return t
}()

const (
	isControl = 1 << iota
	isWide
)

// cleanShown is clean for lines that nothing reads as data: those of files, and those that
// rules classify.
func cleanShown(line []byte) string { return termtext.Overwrite(clean(line)) }

// control reports characters that steer a terminal, C1 and line separators
// included; a tab is text, and a carriage return is kept.
func control(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\r' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
}
