package textcut

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// As many blank lines, and blanks within a line, stay as they are.
const (
	keptLines  = 3
	keptBlanks = 79
)

// Blanks returns a text for a person with its long stretches of nothing as counts, such as [40 blank lines], so that
// they do not push the rest out of sight. A line with only the mark of a difference is blank too.
func Blanks(text string) string {
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		mark, blank := blankLine(lines[i])
		n := 1
		for blank && i+n < len(lines) {
			if m, ok := blankLine(lines[i+n]); !ok || m != mark {
				break
			}
			n++
		}
		switch {
		case n > keptLines:
			out = append(out, fmt.Sprintf("%s[%d blank lines]", mark, n))
		case blank:
			for range n {
				out = append(out, mark)
			}
		default:
			out = append(out, CountBlanks(lines[i], unicode.IsSpace, keptBlanks))
		}
		i += n
	}
	return strings.Join(out, "\n")
}

// blankLine reports whether a line has nothing but blanks behind the mark of a difference, which it returns.
func blankLine(line string) (mark string, blank bool) {
	mark = strings.TrimSpace(line)
	return mark, mark == "" || mark == "+" || mark == "-"
}

// CountBlanks returns a line with each stretch of more than most blanks as a count, such as [300 blanks].
func CountBlanks(line string, isBlank func(rune) bool, most int) string {
	var b strings.Builder
	for line != "" {
		rest := strings.TrimLeftFunc(line, isBlank)
		blanks := line[:len(line)-len(rest)]
		if n := utf8.RuneCountInString(blanks); n > most {
			blanks = fmt.Sprintf("[%d blanks]", n)
		}
		b.WriteString(blanks)
		end := strings.IndexFunc(rest, isBlank)
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(rest[:end])
		line = rest[end:]
	}
	return b.String()
}
