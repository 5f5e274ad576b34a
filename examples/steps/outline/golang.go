package main

import "strings"

// goLines outlines Go. gofmt puts declarations at the beginning of a line, and those of a
// group behind one tab.
type goLines struct {
	group   string // kind of the declarations of an open group
	raw     bool   // in a raw string
	comment bool   // in a /* comment
}

func (g *goLines) line(text string) (found []symbol) {
	inside := g.raw || g.comment
	g.follow(text)
	switch {
	case inside:
		return nil
	case g.group != "" && strings.HasPrefix(text, ")"):
		g.group = ""
		return nil
	case g.group != "":
		member, ok := strings.CutPrefix(text, "\t")
		if name, _ := identifier(member); ok && name != "" && name != "_" {
			return []symbol{{name: name, kind: g.group}}
		}
		return nil
	}
	for _, d := range []declares{{"type", "type"}, {"const", "constant"}, {"var", "variable"}} {
		rest, ok := word(text, d.keyword)
		if !ok {
			continue
		}
		if strings.HasPrefix(rest, "(") {
			if !strings.Contains(rest, ")") {
				g.group = d.kind
			}
			return nil
		}
		if name, _ := identifier(rest); name != "" && name != "_" {
			return []symbol{{name: name, kind: d.kind}}
		}
	}
	if rest, ok := word(text, "func"); ok {
		return function(rest)
	}
	return nil
}

// function reads what follows func: a name, or a receiver and a name.
func function(rest string) []symbol {
	s := symbol{kind: "function"}
	if receiver, behind, ok := strings.Cut(strings.TrimPrefix(rest, "("), ")"); ok && strings.HasPrefix(rest, "(") {
		s.kind, rest = "method", strings.TrimLeft(behind, " ")
		if i := strings.IndexByte(receiver, '['); i >= 0 { // type parameters
			receiver = receiver[:i]
		}
		receiver = receiver[strings.LastIndexAny(receiver, " *")+1:]
		s.in = receiver
	}
	if s.name, _ = identifier(rest); s.name == "" {
		return nil
	}
	return []symbol{s}
}

// follow keeps whether the end of a line is within a raw string or a comment.
func (g *goLines) follow(text string) {
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case g.comment:
			if g.comment = !strings.HasPrefix(rest, "*/"); !g.comment {
				i++
			}
		case g.raw:
			g.raw = text[i] != '`'
		case strings.HasPrefix(rest, "//"):
			return
		case strings.HasPrefix(rest, "/*"):
			g.comment = true
			i++
		case text[i] == '`':
			g.raw = true
		case text[i] == '"', text[i] == '\'':
			i += quoted(rest)
		}
	}
}

// quoted returns the index of the end of the text in quotes at the beginning of s, or of the
// end of s.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i
		}
	}
	return len(s)
}
