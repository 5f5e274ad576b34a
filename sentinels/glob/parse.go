package glob

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a pattern. They bound the time of a match.
const (
	maxBytes       = 1 << 10
	maxExpanded    = 16 << 10 // bytes of all alternatives, and
	perAlternative = 16       // bytes for each of them
	maxSegments    = 63       // a set of segments fits into a word, with one bit for the end
	maxDoubleStars = 8        // of one alternative
)

// A Pattern matches paths. The zero value matches none.
type Pattern struct {
	alternatives []alternative
}

// An alternative is a pattern without braces.
type alternative []segment

// A segment matches one component of a path, or any number of them.
type segment struct {
	text string
	kind kind
}

type kind int

const (
	literal    kind = iota
	wildcard        // the library matches it
	suffix          // "*" and a literal text, which is most of all patterns
	doubleStar      // any number of components
)

// ParseFiles is Parse for a pattern that selects files: an alternative without wildcards also matches every path below it,
// because it may name a folder.
func ParseFiles(text string) (Pattern, error) {
	p, err := Parse(text)
	for i, a := range p.alternatives {
		if len(a) < maxSegments && !slices.ContainsFunc(a, func(s segment) bool { return s.kind != literal }) {
			p.alternatives[i] = append(a, segment{kind: doubleStar})
		}
	}
	return p, err
}

// ParseSearch is ParseFiles for a search below a folder: a pattern without a slash applies in every folder, as it does for
// grep and git, and "./" before it says that it applies in the first one only.
func ParseSearch(text string) (Pattern, error) {
	p, err := ParseFiles(text)
	if !strings.Contains(text, "/") {
		for i, a := range p.alternatives {
			if a[0].kind != doubleStar {
				p.alternatives[i] = slices.Insert(a, 0, segment{kind: doubleStar})
			}
		}
	}
	return p, err
}

// Parse reads a pattern of paths relative to a folder, which may begin with "./". Errors name the pattern.
func Parse(text string) (Pattern, error) {
	given := text
	text = strings.TrimPrefix(text, "./")
	switch {
	case text == "":
		return Pattern{}, errors.New("empty pattern")
	case len(text) > maxBytes:
		return Pattern{}, fmt.Errorf("pattern of %d bytes: want at most %d", len(text), maxBytes)
	case strings.ContainsRune(text, 0):
		return Pattern{}, invalid(text, "zero byte")
	case path.IsAbs(text):
		return Pattern{}, fmt.Errorf("absolute pattern %q: want one relative to the workspace, such as %q", given, "."+path.Clean(text))
	case text == ".":
		return Pattern{}, fmt.Errorf("pattern %q: write \"**\" for all files", given)
	case path.Clean(text) != text && !leaves(strings.Split(text, "/")):
		return Pattern{}, fmt.Errorf("pattern %q: write %q", given, path.Clean(text))
	}
	e := expansion{}
	if err := e.expand("", text); err != nil {
		return Pattern{}, invalid(text, err.Error())
	}
	var p Pattern
	for _, one := range e.texts {
		names := strings.Split(one, "/")
		if leaves(names) {
			return Pattern{}, fmt.Errorf("pattern %q leaves the workspace", text)
		}
		a, err := newAlternative(names)
		if err != nil {
			return Pattern{}, invalid(text, err.Error())
		}
		if len(a) > 0 {
			p.alternatives = append(p.alternatives, a)
		}
	}
	if len(p.alternatives) == 0 {
		return Pattern{}, invalid(text, "it matches no path")
	}
	return p, nil
}

func invalid(text, why string) error { return fmt.Errorf("invalid pattern %q: %s", text, why) }

// leaves reports whether a component leads out of the folder.
func leaves(names []string) bool {
	for _, name := range names {
		if name == ".." {
			return true
		}
	}
	return false
}

// newAlternative analyzes the segments of a pattern. An alternative such as
// "a/{b,}/c" leaves empty ones, which mean nothing in a path.
func newAlternative(names []string) (alternative, error) {
	var a alternative
	stars := 0
	for _, name := range names {
		if name != "**" {
			name = clean(name)
		}
		switch {
		case name == "" || name == ".":
		case name == "**":
			if n := len(a); n > 0 && a[n-1].kind == doubleStar {
				continue
			}
			if stars++; stars > maxDoubleStars {
				return nil, fmt.Errorf(`more than %d "**"`, maxDoubleStars)
			}
			a = append(a, segment{kind: doubleStar})
		case !strings.ContainsAny(name, `*?[\`):
			a = append(a, segment{name, literal})
		case name[0] == '*' && !strings.ContainsAny(name[1:], `*?[\`):
			a = append(a, segment{name[1:], suffix})
		case !doublestar.ValidatePattern(name):
			return nil, fmt.Errorf("%q is not a valid name with wildcards", name)
		default:
			a = append(a, segment{name, wildcard})
		}
	}
	if len(a) > maxSegments {
		return nil, fmt.Errorf("more than %d segments", maxSegments)
	}
	return a, nil
}

// clean escapes the braces that are left after the expansion, because they stand
// for themselves, and shortens runs of stars, which the library reads differently.
func clean(name string) string {
	if !strings.ContainsAny(name, "{}") && !strings.Contains(name, "**") {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		from := i
		i = next(name, i)
		switch {
		case name[from] == '{' || name[from] == '}':
			b.WriteByte('\\')
		case strings.HasPrefix(name[from:], "**"):
			continue
		}
		b.WriteString(name[from:i])
	}
	return b.String()
}

// An expansion collects the alternatives of a pattern.
type expansion struct {
	texts []string
	size  int
}

// expand writes out the braces of rest, behind a text that has none.
func (e *expansion) expand(done, rest string) error {
	for i := 0; i < len(rest); {
		if rest[i] != '{' {
			i = next(rest, i)
			continue
		}
		options, tail, ok := alternatives(rest[i:])
		if !ok {
			return errors.New("brace without an end")
		}
		for _, option := range options {
			if err := e.expand(done+rest[:i], option+tail); err != nil {
				return err
			}
		}
		return nil
	}
	if e.size += len(done) + len(rest) + perAlternative; e.size > maxExpanded {
		return fmt.Errorf("its alternatives have more than %d bytes: use several patterns", maxExpanded)
	}
	e.texts = append(e.texts, done+rest)
	return nil
}

// alternatives splits the group at the start of a text.
func alternatives(text string) (options []string, tail string, ok bool) {
	depth, from := 0, 1
	for i := 0; i < len(text); i = next(text, i) {
		switch {
		case text[i] == '{':
			depth++
		case text[i] == '}' && depth == 1:
			return append(options, text[from:i]), text[i+1:], true
		case text[i] == '}':
			depth--
		case text[i] == ',' && depth == 1:
			options = append(options, text[from:i])
			from = i + 1
		}
	}
	return nil, "", false
}

// next returns the index behind the character, escaped character or class at i.
func next(text string, i int) int {
	switch text[i] {
	case '\\':
		return min(i+2, len(text))
	case '[':
		end := i + 1
		if end < len(text) && (text[end] == '!' || text[end] == '^') {
			end++
		}
		for ; end < len(text); end++ {
			switch text[end] {
			case '\\':
				end++
			case ']':
				return end + 1
			}
		}
	}
	return i + 1
}
