package output

import (
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// filledLine is from how many characters on a line of prose counts as filled by its author: the next
// line continues its paragraph.
const filledLine = 70

// described matches the beginning of a line with a description in a column of its own, as of a flag.
var described = lazyregexp.New(`^( *\S+(?: \S+)*  +)`)

// Wrap breaks the lines of a help text at words, so that each fits into width. A line with a
// description in a column continues in that column. Examples and code stay as they are: they are copied.
func Wrap(text string, width int) string {
	var out []string
	code, examples := false, false
	for line := range strings.SplitSeq(text, "\n") {
		fence := strings.HasPrefix(line, "```")
		if fence {
			code = !code
		}
		examples = line == "Examples:" || examples && line != ""
		if last := len(out) - 1; last >= 0 && prose(line) && prose(out[last]) && utf8.RuneCountInString(out[last]) >= filledLine && !code && !examples {
			out[last] += " " + line
			continue
		}
		if code || fence || examples || strings.HasPrefix(line, "|") {
			line = keep + line
		}
		out = append(out, line)
	}
	for i, line := range out {
		if kept, ok := strings.CutPrefix(line, keep); ok {
			out[i] = kept
		} else {
			out[i] = strings.Join(wrapLine(line, width), "\n")
		}
	}
	return strings.Join(out, "\n")
}

// keep marks lines that are not wrapped. It is in no text of ours.
const keep = "\x00"

// prose reports whether a line may be a part of a paragraph.
func prose(line string) bool {
	return line != "" && !strings.ContainsAny(line[:1], " \t-#|`*\x00") && !described.MatchString(line)
}

// wrapLine breaks one line.
func wrapLine(line string, width int) []string {
	if utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	hang := len(line) - len(strings.TrimLeft(line, " "))
	if strings.HasPrefix(line[hang:], "- ") {
		hang += 2
	}
	head := line[:hang]
	if m := described.FindStringSubmatch(line); m != nil && utf8.RuneCountInString(m[1]) <= width/2 {
		head, hang = m[1], utf8.RuneCountInString(m[1])
	}
	return Fill(head, line[len(head):], hang, width)
}

// Fill breaks text at words into lines of at most width characters: the first one behind head, the
// others behind so many blanks as hang says. A longer word has a line of its own.
func Fill(head, text string, hang, width int) (lines []string) {
	line, empty := head, true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line, empty = strings.Repeat(" ", hang), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return append(lines, line)
}
