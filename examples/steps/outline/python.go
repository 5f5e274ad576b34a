package main

import "strings"

// pythonLines outlines Python: a definition belongs to the class that is less indented and
// nearest above. Functions within functions are left out.
type pythonLines struct {
	open []scope
	long string // the quotes of a text over several lines
}

// A scope is a class or function whose body is read.
type scope struct {
	indent int
	name   string
	class  bool
}

func (p *pythonLines) line(text string) []symbol {
	inside := p.long != ""
	p.follow(text)
	code := strings.TrimLeft(text, " \t")
	if inside || code == "" || code[0] == '#' {
		return nil
	}
	indent := 0
	for _, c := range text[:len(text)-len(code)] {
		if indent++; c == '\t' {
			indent += 7 - (indent-1)%8
		}
	}
	for len(p.open) > 0 && p.open[len(p.open)-1].indent >= indent {
		p.open = p.open[:len(p.open)-1]
	}
	if rest, ok := word(code, "async"); ok {
		code = rest
	}
	rest, class := word(code, "class")
	if !class {
		var def bool
		if rest, def = word(code, "def"); !def {
			return p.constant(text)
		}
	}
	name, _ := identifier(rest)
	if name == "" {
		return nil
	}
	s := symbol{name: name, kind: "function"}
	hidden := false
	for _, o := range p.open {
		hidden = hidden || !o.class
		s.in, s.kind = o.name, "method"
	}
	if class {
		s.kind = "class"
	}
	p.open = append(p.open, scope{indent, name, class})
	if hidden {
		return nil
	}
	return []symbol{s}
}

// constant finds a name in capitals that is set at the beginning of a line.
func (p *pythonLines) constant(text string) []symbol {
	name, rest := identifier(text)
	rest = strings.TrimLeft(rest, " ")
	set := strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, ":") && strings.Contains(rest, "=")
	if name == "" || name != strings.ToUpper(name) || !set {
		return nil
	}
	return []symbol{{name: name, kind: "constant"}}
}

// follow keeps whether the end of a line is within a text of three quotes.
func (p *pythonLines) follow(text string) {
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case p.long != "":
			if strings.HasPrefix(rest, p.long) {
				i, p.long = i+2, ""
			}
		case text[i] == '#':
			return
		case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, "'''"):
			p.long, i = rest[:3], i+2
		case text[i] == '"', text[i] == '\'':
			i += quoted(rest)
		}
	}
}
