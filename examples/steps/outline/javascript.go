package main

import "strings"

// scriptLines outlines JavaScript and TypeScript: declarations outside of all braces, and the
// methods of classes there. Regular expressions with quotes or braces may confuse it.
type scriptLines struct {
	depth    int    // of braces, at the beginning of the line
	class    string // whose body is read
	at       int    // its depth
	comment  bool   // in a /* comment
	template bool   // in a template text
}

// notMethods are keywords that a parenthesis follows.
var notMethods = map[string]bool{"if": true, "for": true, "while": true, "switch": true, "catch": true, "return": true, "function": true, "super": true, "await": true, "new": true}

func (j *scriptLines) line(text string) []symbol {
	inside, depth := j.comment || j.template, j.depth
	j.follow(text)
	code := strings.TrimLeft(text, " \t")
	if inside || code == "" {
		return nil
	}
	if j.class != "" && depth < j.at {
		j.class = ""
	}
	switch {
	case depth == 0:
		return j.declaration(code)
	case j.class != "" && depth == j.at:
		return j.method(code)
	}
	return nil
}

func (j *scriptLines) declaration(code string) []symbol {
	for _, keyword := range []string{"export", "default", "declare", "abstract", "async"} {
		if rest, ok := word(code, keyword); ok {
			code = rest
		}
	}
	if rest, ok := word(strings.Replace(code, "function*", "function ", 1), "function"); ok {
		return named(rest, "function")
	}
	for _, d := range []declares{{"class", "class"}, {"interface", "type"}, {"enum", "type"}, {"type", "type"}} {
		rest, ok := word(code, d.keyword)
		if !ok {
			continue
		}
		found := named(rest, d.kind)
		if d.kind == "class" && len(found) > 0 && j.depth > 0 {
			j.class, j.at = found[0].name, j.depth
		}
		return found
	}
	for _, d := range []declares{{"const", "constant"}, {"let", "variable"}, {"var", "variable"}} {
		rest, ok := word(code, d.keyword)
		if !ok {
			continue
		}
		kind := d.kind
		if _, value, set := strings.Cut(rest, "="); set && (strings.Contains(value, "=>") || strings.HasPrefix(strings.TrimSpace(value), "function") || strings.HasPrefix(strings.TrimSpace(value), "async ")) {
			kind = "function"
		}
		return named(rest, kind)
	}
	return nil
}

// method finds NAME(...) in the body of a class, behind words such as static and async.
func (j *scriptLines) method(code string) []symbol {
	for _, keyword := range []string{"public", "private", "protected", "static", "override", "async", "get", "set"} {
		if rest, ok := word(code, keyword); ok {
			code = rest
		}
	}
	code = strings.TrimPrefix(strings.TrimPrefix(code, "*"), "#")
	name, rest := identifier(code)
	if name == "" || notMethods[name] || !strings.HasPrefix(rest, "(") && !strings.HasPrefix(rest, "<") {
		return nil
	}
	return []symbol{{name: name, kind: "method", in: j.class}}
}

func named(rest, kind string) []symbol {
	if name, _ := identifier(rest); name != "" {
		return []symbol{{name: name, kind: kind}}
	}
	return nil
}

// follow keeps the depth of braces and whether the end of a line is within a comment or a
// template text.
func (j *scriptLines) follow(text string) {
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case j.comment:
			if j.comment = !strings.HasPrefix(rest, "*/"); !j.comment {
				i++
			}
		case j.template:
			if text[i] == '\\' {
				i++
				continue
			}
			j.template = text[i] != '`'
		case strings.HasPrefix(rest, "//"):
			return
		case strings.HasPrefix(rest, "/*"):
			j.comment = true
			i++
		case text[i] == '`':
			j.template = true
		case text[i] == '"', text[i] == '\'':
			i += quoted(rest)
		case text[i] == '{':
			j.depth++
		case text[i] == '}':
			j.depth = max(j.depth-1, 0)
		}
	}
}
