package packaging

import "strings"

// lines gathers the lines of a unit.
type lines struct{ strings.Builder }

func (l *lines) add(text ...string) {
	for _, t := range text {
		l.WriteString(t)
		l.WriteByte('\n')
	}
}

// commentWidth is where comments are wrapped, in bytes.
const commentWidth = 100

// why writes a comment. The lines that follow are what it explains.
func (l *lines) why(text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > commentWidth {
			l.add(line)
			line = "#"
		}
		line += " " + word
	}
	l.add(line)
}

// plain escapes what a value without quoting still gives a meaning to: the
// percent sign begins a specifier everywhere in a unit.
func plain(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// folder is plain for a folder at the end of a line: systemd joins a line that ends in a backslash with the next one.
func folder(s string) string {
	if strings.HasSuffix(s, `\`) {
		s += "/"
	}
	return plain(s)
}

// word writes one word of a list.
func word(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\"'\\;%#") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s) + `"`
}

// argument is word for a command line, where a dollar begins a variable, also
// within quotes; the program's own name is a word.
func argument(s string) string { return strings.ReplaceAll(word(s), "$", "$$") }
