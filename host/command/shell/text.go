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
	zeros  int64 // zero bytes that came; they are taken out of the lines
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
		emit(s.text(bytes.TrimRight(s.rest, "\r")), false) // a line of Windows ends with \r\n
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
		text, begun := s.redact.Begin(clean(s.rest[:end]))
		emit(text, true)
		s.rest = append([]byte(begun), s.rest[end:]...)
	}
}

// flush gives out a last line that has no line feed.
func (s *splitter) flush(emit emitLine) {
	if len(s.rest) > 0 {
		emit(s.text(s.rest), true)
		s.rest = nil
	}
}

// text is a line as it is kept. Secrets are looked for behind [clean], because control
// characters in the middle of one hide it.
func (s *splitter) text(line []byte) string { return s.redact.String(clean(line)) }

// clean makes a line fit to read and to store: without terminal escapes and
// control characters, and valid UTF-8. Carriage returns stay: in the data of a program they
// are data. [termtext.Overwrite] leaves out what they overwrite on a terminal.
func clean(line []byte) string {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = stripEscapes(line)
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

// stripEscapes removes the escape sequences of ECMA-48: CSI, the string
// sequences (OSC, DCS, SOS, PM, APC) and the short ones.
func stripEscapes(line []byte) []byte {
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		if line[i] != 0x1b {
			out = append(out, line[i])
			continue
		}
		i++
		if i == len(line) {
			break
		}
		switch c := line[i]; {
		case c == '[':
			for i++; i < len(line) && (line[i] < 0x40 || line[i] > 0x7e); i++ {
			}
		case bytes.IndexByte([]byte("]PX^_"), c) >= 0:
			for i++; i < len(line) && line[i] != 0x07; i++ {
				if line[i] == 0x1b && i+1 < len(line) && line[i+1] == '\\' {
					i++
					break
				}
			}
		case c >= 0x20 && c <= 0x2f:
			for ; i < len(line) && line[i] >= 0x20 && line[i] <= 0x2f; i++ {
			}
		}
	}
	return out
}
