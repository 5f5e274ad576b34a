package textcut

import (
	"fmt"
	"strings"
	"unicode"
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
			out = append(out, blanksWithin(lines[i]))
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

// blanksWithin counts the blanks of a line where they are many.
func blanksWithin(line string) string {
	var b strings.Builder
	for line != "" {
		from := strings.IndexFunc(line, unicode.IsSpace)
		if from < 0 {
			break
		}
		n, to := 0, len(line)
		for i, r := range line[from:] {
			if !unicode.IsSpace(r) {
				to = from + i
				break
			}
			n++
		}
		if b.WriteString(line[:from]); n > keptBlanks {
			fmt.Fprintf(&b, "[%d blanks]", n)
		} else {
			b.WriteString(line[from:to])
		}
		line = line[to:]
	}
	b.WriteString(line)
	return b.String()
}
