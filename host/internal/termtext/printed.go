package termtext

import (
	"bytes"
	"strings"
)

// Printed returns a line that a program has printed as a terminal leaves it: without what carriage
// returns overwrite and without escape sequences, but with colors those that set colors.
func Printed(line string, colors bool) Text {
	text := string(Strip([]byte(Overwrite(line)), colors))
	if !colors || !strings.Contains(text, "\x1b") {
		return escape(text, "\t")
	}
	var out strings.Builder
	for len(text) > 0 {
		if n := colorSequence(text); n > 0 {
			out.WriteString(text[:n])
			text = text[n:]
			continue
		}
		end := strings.IndexByte(text[1:], 0x1b) + 1
		if end == 0 {
			end = len(text)
		}
		out.WriteString(string(escape(text[:end], "\t")))
		text = text[end:]
	}
	return Text(out.String() + "\x1b[0m")
}

// colorSequence returns the length of the sequence at the beginning of a text that sets colors and
// other properties of characters, 0 if there is none.
func colorSequence(text string) int {
	if len(text) < 3 || text[0] != 0x1b || text[1] != '[' {
		return 0
	}
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && (c < '0' || c > '9'):
			return 0
		}
	}
	return 0
}

// Strip returns a line without the escape sequences of ECMA-48: CSI, the string sequences (OSC, DCS,
// SOS, PM, APC) and the short ones. With colors, those that set colors stay.
func Strip(line []byte, colors bool) []byte {
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		if line[i] != 0x1b {
			out = append(out, line[i])
			continue
		}
		if n := colorSequence(string(line[i:min(len(line), i+64)])); colors && n > 0 {
			out = append(out, line[i:i+n]...)
			i += n - 1
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
