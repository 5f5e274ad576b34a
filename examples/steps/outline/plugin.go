// Command outline is a step plugin that is also a command: the symbols of a source file, so
// that a model reads a long file only where it has to.
package main

import (
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "The source file, relative to the workspace: .go, .py, .js, .mjs, .jsx, .ts or .tsx.", "examples": ["src/server.py"]},
    "kinds": {"type": "array", "items": {"enum": ["function", "method", "class", "type", "constant", "variable"]}, "description": "Only symbols of these kinds; default all."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

// A command needs a schema of its output: models and other programs read it.
const output = `{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "language": {"enum": ["go", "python", "javascript"]},
    "lines": {"type": "integer", "description": "Lines of the file."},
    "symbols": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "name": {"type": "string"},
          "kind": {"enum": ["function", "method", "class", "type", "constant", "variable"]},
          "line": {"type": "integer", "description": "From 1, for offset of code/read."},
          "in": {"type": "string", "description": "The class or type that it belongs to."}
        },
        "required": ["name", "kind", "line"],
        "additionalProperties": false
      }
    },
    "truncated": {"type": "boolean", "description": "There are more symbols."}
  },
  "required": ["path", "language", "lines", "symbols", "truncated"],
  "additionalProperties": false
}`

var plugin = sdk.Plugin{
	Name:    "outline",
	Version: "1.0.0",
	Steps: []sdk.Step{{
		Type:     "outline",
		Summary:  "Lists the functions, classes, types and constants of a source file (Go, Python, JavaScript, TypeScript) with their lines.",
		Fields:   fields,
		Output:   output,
		ReadOnly: true,
		Provides: &sdk.Provides{As: sdk.RoleCommand, Name: "outline/symbols"},
		Run:      run,
	}},
	Permissions: []sdk.Permission{
		{Use: sdk.UseProvide, Names: []string{string(sdk.RoleCommand)}, Reason: "Models and steps call outline/symbols by its name."},
		{Use: sdk.UseCommand, Names: []string{"code/read"}, Reason: "The file that is outlined is read with it."},
	},
}

// A symbol is something with a name in a file.
type symbol struct {
	name, kind, in string
	line           int64
}

// declares is a keyword and the kind of what it declares.
type declares struct{ keyword, kind string }

// An outliner reads the lines of a file one after the other.
type outliner interface {
	// line returns the symbols that a line begins.
	line(text string) []symbol
}

// languages are the outliners by the end of the file's name.
var languages = []struct {
	suffix, name string
	new          func() outliner
}{
	{".go", "go", func() outliner { return &goLines{} }},
	{".py", "python", func() outliner { return &pythonLines{} }},
	{".js", "javascript", func() outliner { return &scriptLines{} }},
	{".mjs", "javascript", func() outliner { return &scriptLines{} }},
	{".jsx", "javascript", func() outliner { return &scriptLines{} }},
	{".ts", "javascript", func() outliner { return &scriptLines{} }},
	{".tsx", "javascript", func() outliner { return &scriptLines{} }},
}

// most bounds the symbols of one answer: beyond it an outline is as long as a file.
const most = 1000

func run(c *sdk.Context) (sdk.Value, error) {
	path, err := c.StringField("path")
	if err != nil {
		return sdk.Value{}, err
	}
	for _, l := range languages {
		if strings.HasSuffix(path, l.suffix) {
			return outline(c, path, l.name, l.new())
		}
	}
	e := sdk.BadField("path", "no language is known for "+sdk.Quote(path))
	e.Hint = "outline reads .go, .py, .js, .mjs, .jsx, .ts and .tsx"
	return sdk.Value{}, e
}

func outline(c *sdk.Context, path, language string, in outliner) (sdk.Value, error) {
	kinds := map[string]bool{}
	for _, kind := range c.Field("kinds").Items() {
		kinds[kind.StringOr("")] = true
	}
	var symbols []sdk.Value
	truncated, lines := false, int64(0)
	for {
		// A file that is longer than one answer is read part by part.
		part, err := c.Command("code/read", sdk.Object(sdk.F("path", sdk.String(path)), sdk.F("offset", sdk.Int(lines+1))))
		if err != nil {
			return sdk.Value{}, err
		}
		text := strings.Split(strings.TrimSuffix(part.Get("content").StringOr(""), "\n"), "\n")
		read := part.Get("lines").IntOr(0)
		for i := int64(0); i < read && i < int64(len(text)); i++ {
			for _, s := range in.line(strings.TrimSuffix(text[i], "\r")) {
				if len(kinds) > 0 && !kinds[s.kind] {
					continue
				}
				if truncated = len(symbols) == most; !truncated {
					s.line += lines + i + 1
					symbols = append(symbols, s.value())
				}
			}
		}
		lines += read
		if total := part.Get("totalLines").IntOr(0); read == 0 || lines >= total {
			lines = total
			break
		}
	}
	return sdk.Object(sdk.F("path", sdk.String(path)), sdk.F("language", sdk.String(language)), sdk.F("lines", sdk.Int(lines)),
		sdk.F("symbols", sdk.List(symbols...)), sdk.F("truncated", sdk.Bool(truncated))), nil
}

func (s symbol) value() sdk.Value {
	v := sdk.Object(sdk.F("name", sdk.String(s.name)), sdk.F("kind", sdk.String(s.kind)), sdk.F("line", sdk.Int(s.line)))
	if s.in != "" {
		v = v.With("in", sdk.String(s.in))
	}
	return v
}

// identifier returns the identifier at the beginning of a text, and what follows.
func identifier(text string) (name, rest string) {
	end := len(text)
	for i, r := range text {
		letter := r == '_' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f
		if !letter && (i == 0 || r < '0' || r > '9') {
			end = i
			break
		}
	}
	return text[:end], text[end:]
}

// word returns what follows a keyword and a space; ok is false if text does not begin so.
func word(text, keyword string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, keyword)
	if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
		return text, false
	}
	return strings.TrimLeft(rest, " \t"), true
}

func init() { sdk.Main(plugin) }

func main() {} // never called: a plugin is a library
