package filewalk

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// Limits of the .gitignore files of a folder and the folders above it, because
// each name is compared with all their rules. What is beyond them is not read.
const (
	maxIgnoreFile = 256 << 10 // bytes of one file
	maxRules      = 2000      // lines of all files
)

// A rule is one line of a .gitignore file.
type rule struct {
	pattern glob.Pattern
	name    bool // compared with the last component of a path
	keep    bool // the line begins with "!"
	folder  bool // only folders match
}

// parseIgnore reads at most limit rules. Git ignores lines that are not a pattern,
// and so does this.
func parseIgnore(text string, limit int) []rule {
	var rules []rule
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		if len(rules) >= limit {
			break
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = trimSpaces(line)
		var r rule
		line, r.keep = strings.CutPrefix(line, "!")
		line, r.folder = strings.CutSuffix(line, "/")
		r.name = !strings.Contains(line, "/")
		translate := globOf
		if r.name {
			translate = plainGlob
		}
		text, err := translate(strings.TrimPrefix(line, "/"))
		if err != nil || strings.HasPrefix(text, "./") { // which matches no path of git's
			continue
		}
		if r.pattern, err = glob.Parse(text); err != nil {
			continue
		}
		rules = append(rules, r)
	}
	return rules
}

// trimSpaces removes spaces at the end that are not escaped.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if line[i] == ' ' {
			continue
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

var errPattern = errors.New("not a pattern of a .gitignore file")

// globOf translates a pattern with a slash.
func globOf(pattern string) (string, error) {
	stem, rest, ok := cutStem(pattern)
	if !ok {
		return plainGlob(pattern)
	}
	stem, _ = plainGlob(stem) // it has no wildcards, so it is valid
	rest, err := plainGlob(rest)
	return "{" + stem + "," + stem + "*/**/}" + rest, err
}

// plainGlob translates a pattern: a .gitignore file has no alternatives in braces,
// its classes have other rules, and a final "**" does not match the folder itself.
func plainGlob(pattern string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '[':
			class, length, err := globClass(pattern[i:])
			if err != nil {
				return "", err
			}
			b.WriteString(class)
			i += length - 1
			continue
		case c == '{' || c == '}' || c == ',':
			b.WriteByte('\\')
		case c == '\\' && strings.HasPrefix(pattern[i+1:], "/"):
			continue
		case c == '\\' && i+1 < len(pattern):
			b.WriteByte(c)
			i++
		}
		b.WriteByte(pattern[i])
	}
	segments := strings.Split(b.String(), "/")
	for i, s := range segments {
		if len(s) > 2 && strings.Trim(s, "*") == "" {
			segments[i] = "**"
		}
	}
	if segments[len(segments)-1] == "**" {
		segments = append(segments, "*")
	}
	return strings.Join(segments, "/"), nil
}

// cutStem cuts a pattern such as "a**/b" before and after "**/". Git
// compares what is before the first wildcard as text, and so takes the stars behind
// it as the start of a pattern, where they match any number of folders.
func cutStem(pattern string) (stem, rest string, ok bool) {
	i := strings.IndexAny(pattern, `*?[\`)
	if i < 1 || pattern[i-1] == '/' || !strings.HasPrefix(pattern[i:], "**") {
		return "", "", false
	}
	if strings.Trim(pattern[i:], "*/") == "" {
		return pattern[:i], "*", true
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(pattern[i:], "*"), "/")
	return pattern[:i], rest, ok
}

// namedClasses are the classes that a .gitignore file can name, in ASCII as git has
// them. Slashes are left out: a class does not match them.
var namedClasses = map[string]string{
	"alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \t", "cntrl": "\x01-\x1f\x7f", "digit": "0-9", "graph": "\\!-.0-\\~", "lower": "a-z",
	"print": " -.0-\\~", "punct": "\\!-.:-@\\[-`{-\\~", "space": " \t-\r", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}

// globClass translates the class at the start of a pattern and returns its length.
// Every character is escaped, so that it has no meaning in the result.
func globClass(text string) (class string, length int, err error) {
	i := 1
	negated := i < len(text) && (text[i] == '!' || text[i] == '^')
	if negated {
		i++
	}
	// char reads one character, escaped or not.
	char := func() rune {
		if i < len(text) && text[i] == '\\' {
			i++
		}
		if i >= len(text) {
			err = errPattern
			return 0
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		return r
	}
	var chars strings.Builder
	for first := true; err == nil && (first || i < len(text) && text[i] != ']'); first = false {
		if name, n := className(text[i:]); n > 0 {
			named, ok := namedClasses[name]
			if !ok {
				return "", 0, errPattern
			}
			chars.WriteString(named)
			i += n
			continue
		}
		from := char()
		to := from
		if i+1 < len(text) && text[i] == '-' && text[i+1] != ']' {
			i++
			to = char()
		}
		if from == '/' {
			from++
		}
		if to == '/' {
			to--
		}
		if from <= to {
			chars.WriteString(`\` + string(from) + `-\` + string(to))
		}
	}
	switch {
	case err != nil || i >= len(text):
		return "", 0, errPattern
	case chars.Len() == 0 && negated:
		return "?", i + 1, nil
	case chars.Len() == 0:
		return "", 0, errPattern
	case negated:
		return "[!" + chars.String() + "]", i + 1, nil
	}
	return "[" + chars.String() + "]", i + 1, nil
}

// className returns the name in "[:name:]" at the start of a text, and the length.
func className(text string) (name string, length int) {
	rest, ok := strings.CutPrefix(text, "[:")
	end := strings.IndexByte(rest, ']')
	if !ok || end < 1 || rest[end-1] != ':' {
		return "", 0
	}
	return rest[:end-1], len("[:") + end + 1
}

// A scope is the rules that apply in a folder.
type scope struct {
	dir   string
	rules []rule
	outer *scope // of the folders above, nil if there are none
	count int    // rules, including those of outer
}

// ignores reports whether the rules ignore a path. The last matching rule of the
// innermost folder that has one decides.
func (s *scope) ignores(name, base string, folder bool) bool {
	for ; s != nil; s = s.outer {
		below := name
		if s.dir != "." {
			below = name[len(s.dir)+1:]
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			r := &s.rules[i]
			subject := below
			if r.name {
				subject = base
			}
			if (folder || !r.folder) && r.pattern.Match(subject) {
				return !r.keep
			}
		}
	}
	return false
}
