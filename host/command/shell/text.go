package shell

import (
	"bytes"
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

// splitter cuts the bytes of one stream into lines.
type splitter struct {
	redact *redact.Redactor
	rest   []byte
	zeros  int64 // zero bytes that came
}

// emitLine takes a line; open says that no line end follows it in the stream: it is
// the beginning of a longer line, or the end of the stream.
type emitLine func(text string, open bool)

// push takes what was read and calls emit for every line that is complete.
func (s *splitter) push(data []byte, emit emitLine) {
	s.zeros += int64(bytes.Count(data, []byte{0}))
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			s.rest = append(s.rest, data...)
			break
		}
		s.rest = append(s.rest, data[:i]...)
		s.long(emit)
		emit(s.kept(s.rest), false)
		s.rest = s.rest[:0]
		data = data[i+1:]
	}
	s.long(emit)
}

// long gives out what exceeds the length of a line.
func (s *splitter) long(emit emitLine) {
	for len(s.rest) > maxLine {
		end := maxLine
		for end > maxLine-utf8.UTFMax && !utf8.RuneStart(s.rest[end]) {
			end--
		}
		// The two parts of an escape sequence would become text.
		if i := bytes.LastIndexByte(s.rest[end-maxEscape:end], 0x1b); i >= 0 {
			end -= maxEscape - i
		}
		text, begun := s.begin(s.rest[:end])
		emit(text, true)
		s.rest = append([]byte(begun), s.rest[end:]...)
	}
}

// flush gives out a last line that has no line feed.
func (s *splitter) flush(emit emitLine) {
	if len(s.rest) > 0 {
		emit(s.kept(s.rest), true)
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

// cleanShown is clean for lines that nothing reads as data: those of files, and those that
// rules classify.
func cleanShown(line []byte) string { return termtext.Overwrite(clean(line)) }

// control reports characters that steer a terminal, C1 and line separators
// included; a tab is text, and a carriage return is kept.
func control(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\r' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
}
