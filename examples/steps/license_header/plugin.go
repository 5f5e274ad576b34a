// Command license_header is a step plugin that is also a type of check for acceptance
// criteria: files have to contain a text in their first lines.
package main

import (
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What the first lines have to contain.", "examples": ["SPDX-License-Identifier: MIT"]},
    "suffix": {"type": "string", "default": ".go", "description": "Only files with this end of their name."},
    "path": {"type": "string", "default": "", "description": "A folder in the granted folder code, with all below it."}
  },
  "required": ["text"],
  "additionalProperties": false
}`

// A step type whose output has the boolean passed is a type of check too.
const output = `{
  "type": "object",
  "properties": {
    "passed": {"type": "boolean"},
    "message": {"type": "string"},
    "output": {"type": "string", "description": "The files without the text, one a line."},
    "files": {"type": "integer", "description": "How many were looked at."}
  },
  "required": ["passed", "message", "output", "files"],
  "additionalProperties": false
}`

var plugin = sdk.Plugin{
	Name:    "license_header",
	Version: "1.0.0",
	Steps: []sdk.Step{{
		Type:     "license_header",
		Summary:  "Checks that files contain a text in their first lines.",
		Fields:   fields,
		Output:   output,
		Run:      run,
		ReadOnly: true,
	}},
	Permissions: []sdk.Permission{{Use: sdk.UseFolder, Names: []string{"code"}, Reason: "The files that are checked are there."}},
}

// head is how much of a file counts as its first lines, in bytes.
const head = 1024

// most bounds the files that are named.
const most = 50

// A search is a walk through the folder.
type search struct {
	folder       sdk.Folder
	text, suffix string
	files        int64
	without      []string
}

func run(c *sdk.Context) (sdk.Value, error) {
	text, err := c.StringField("text")
	if err != nil {
		return sdk.Value{}, err
	}
	s := &search{folder: c.Folder("code"), text: text, suffix: c.Field("suffix").StringOr(".go")}
	if err := s.walk(c.Field("path").StringOr("")); err != nil {
		return sdk.Value{}, err
	}
	message := "every file has the text"
	switch n := len(s.without); {
	case s.files == 0: // a typing error in path or suffix must not pass
		message = "no file with the suffix " + sdk.Quote(s.suffix)
	case n == 1:
		message = "1 file is without the text"
	case n > 1:
		message = sdk.Int(int64(n)).String() + " files are without the text"
	}
	return sdk.Object(
		sdk.F("passed", sdk.Bool(s.files > 0 && len(s.without) == 0)),
		sdk.F("message", sdk.String(message)),
		sdk.F("output", sdk.String(strings.Join(s.without[:min(len(s.without), most)], "\n"))),
		sdk.F("files", sdk.Int(s.files)),
	), nil
}

func (s *search) walk(dir string) error {
	entries, err := s.folder.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := e.Name
		if dir != "" {
			path = dir + "/" + e.Name
		}
		switch {
		case strings.HasPrefix(e.Name, "."):
		case e.Dir:
			if err := s.walk(path); err != nil {
				return err
			}
		case strings.HasSuffix(e.Name, s.suffix):
			s.files++
			piece, err := s.folder.ReadAt(path, 0, head)
			if err != nil {
				return err
			}
			if !strings.Contains(string(piece.Data), s.text) {
				s.without = append(s.without, path)
			}
		}
	}
	return nil
}

func init() { sdk.Main(plugin) }

func main() {} // never runs: a plugin is a library to its host
