package termtext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// As many blank lines, and blanks within a line, stay as they are.
const (
	keptLines  = 3
	keptBlanks = 59
)

// Blanks returns a text for a person with its long stretches of nothing as counts, such as [40 blank lines], so that
// they do not push the rest out of sight. Nothing is what [IsBlank] reports, and for a line also the mark of a
// difference alone, whichever mark each of several lines has.
func Blanks(text string) string {
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		var marks []string
		same := true
		for _, line := range lines[i:] {
			mark, blank := blankLine(line)
			if !blank {
				break
			}
			marks = append(marks, mark)
			same = same && mark == marks[0]
		}
		switch n := len(marks); {
		case n == 0:
			out = append(out, countBlanks(lines[i]))
			i++
			continue
		case n <= keptLines:
			out = append(out, marks...)
		case same:
			out = append(out, fmt.Sprintf("%s[%d blank lines]", marks[0], n))
		default:
			out = append(out, fmt.Sprintf("[%d blank lines]", n))
		}
		i += len(marks)
	}
	return strings.Join(out, "\n")
}

// blankLine reports whether a line has nothing but blanks behind the mark of a difference, which it returns.
func blankLine(line string) (mark string, blank bool) {
	mark = strings.TrimFunc(line, IsBlank)
	return mark, mark == "" || mark == "+" || mark == "-"
}

// countBlanks returns a line with each long stretch of blanks as a count, such as [300 blanks].
func countBlanks(line string) string {
	var b strings.Builder
	for line != "" {
		rest := strings.TrimLeftFunc(line, IsBlank)
		blanks := line[:len(line)-len(rest)]
		if n := utf8.RuneCountInString(blanks); n > keptBlanks {
			blanks = fmt.Sprintf("[%d blanks]", n)
		}
		b.WriteString(blanks)
		end := strings.IndexFunc(rest, IsBlank)
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(rest[:end])
		line = rest[end:]
	}
	return b.String()
}
