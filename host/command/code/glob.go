package code

import (
	"errors"
	"regexp"
	"strings"
)

// maxGlob bounds a pattern in bytes.
const maxGlob = 1 << 10

// compileGlob translates a path pattern: * and ? within one part, ** over any
// number of parts, [a-z] and, with braces, {a,b}. A pattern without a slash
// matches the last part at any depth, one with a slash the whole path.
func compileGlob(pattern string, braces bool) (*regexp.Regexp, error) {
	if len(pattern) > maxGlob {
		return nil, errors.New("pattern longer than 1 KiB")
	}
	pattern = strings.TrimPrefix(pattern, "./")
	anchored := strings.Contains(pattern, "/")
	pattern = strings.TrimPrefix(pattern, "/")
	var b strings.Builder
	b.WriteString(`(?s)^`)
	if !anchored {
		b.WriteString(`(?:.*/)?`)
	}
	depth := 0
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch c := pattern[i]; {
		case strings.HasPrefix(rest, "**/") && (i == 0 || pattern[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case rest == "**" && (i == 0 || pattern[i-1] == '/'):
			b.WriteString(`.*`)
			i++
		case c == '*':
			b.WriteString(`[^/]*`)
			for i+1 < len(pattern) && pattern[i+1] == '*' {
				i++
			}
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			n, class := globClass(rest)
			b.WriteString(class)
			i += n - 1
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case braces && c == '{':
			depth++
			b.WriteString(`(?:`)
		case braces && c == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
		case braces && c == ',' && depth > 0:
			b.WriteString(`|`)
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	if depth > 0 {
		return nil, errors.New("brace without an end")
	}
	b.WriteString(`$`)
	return regexp.Compile(b.String())
}

// globClass translates a class at the start of s and returns its length; a
// bracket without an end stands for itself.
func globClass(s string) (int, string) {
	end := strings.IndexByte(s[1:], ']')
	if end <= 0 {
		return 1, `\[`
	}
	body := s[1 : end+1]
	negated := strings.HasPrefix(body, "!") || strings.HasPrefix(body, "^")
	if negated {
		body = body[1:]
	}
	body = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `&`, `\&`, `~`, `\~`).Replace(body)
	if negated {
		return end + 2, `[^/` + body + `]`
	}
	return end + 2, `[` + body + `]`
}
