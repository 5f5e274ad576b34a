package sentinels

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A RefError has the problem of each "$ref" to a file that is missing, that no definition may refer to, or that is one
// of several of the same sentinel. A problem has the place of the "$ref" in the first definition that leads there.
type RefError struct{ Problems Problems }

// NewRefError returns the error of a read of [Beside] for a file that no definition may refer to.
func NewRefError(message, hint string) *RefError {
	return &RefError{Problems{{Kind: KindValue, Message: message, Hint: hint}}}
}

func (e *RefError) Error() string { return e.Problems.Error() }

// A Neighbour is a definition file that another one refers to.
type Neighbour struct {
	File string // relative to the folder of the first definition
	Text []byte
}

// FileExtensions returns the extensions of files of definitions.
func FileExtensions() []string { return []string{".json", ".jsonc"} }

// refFile returns the id of a sentinel whose file a "$ref" names, and the file: "./child.json" or "../shared/child.json",
// relative to the folder of the file that it is in, with its extension. Only the id is stored, since a stored sentinel has
// no folder. The id of a path that is absolute or has a backslash is invalid.
func refFile(ref string) (id ID, file string, is bool) {
	for _, ext := range FileExtensions() {
		if name, ok := strings.CutSuffix(ref, ext); ok {
			if path.IsAbs(ref) || strings.Contains(ref, `\`) {
				return ID(ref), "", true
			}
			return ID(path.Base(name)), path.Clean(ref), true
		}
	}
	return ID(ref), "", strings.ContainsAny(ref, `/\`)
}

// Beside returns the definitions that {"$ref": id} in text means if it is a file: id.json
// or id.jsonc in the folder of the file that says so, and those that they refer to in turn. read reads the first of
// files that exists, which are relative to the folder of text, as is the folder from of the file that says so; named says that "$ref" names the one file, which must
// exist then. It bounds what is read, and refuses files outside of what the caller allows. The error of files that do not exist is
// [fs.ErrNotExist]. A [*RefError] is returned behind all others, with the definitions that were found.
func Beside(text []byte, read func(from string, id ID, files []string, named bool) (Neighbour, error)) (map[ID]Neighbour, error) {
	b := besideSearch{read: read, found: map[ID]Neighbour{}}
	if err := b.definition(text, ".", nil); err != nil {
		return b.found, err
	}
	if len(b.problems) > 0 {
		return b.found, &RefError{b.problems}
	}
	return b.found, nil
}

// A besideSearch is one search of Beside.
type besideSearch struct {
	read     func(string, ID, []string, bool) (Neighbour, error)
	found    map[ID]Neighbour
	problems Problems
}

// definition adds the definitions that text refers to, which is in the folder dir. first is the place in the first
// definition from which it is reached, nil for that definition itself.
func (b *besideSearch) definition(text []byte, dir string, first *Problem) error {
	for _, ref := range refsIn(text) {
		id, file, named := refFile(ref.text)
		if !id.Valid() { // the decoder reports it
			continue
		}
		at := ref.at
		if first != nil {
			at = *first
		}
		report := func(message, hint string) {
			if len(b.problems) < MaxProblems {
				at.Message, at.Hint = message, hint
				b.problems = append(b.problems, at)
			}
		}
		file = path.Join(dir, file)
		if n, ok := b.found[id]; ok {
			if named && filepath.ToSlash(n.File) != file {
				report(fmt.Sprintf("%q in \"$ref\" is not the only file of sentinel %q, which %q is too", file, id, n.File), "give one of them another name and id")
			}
			continue
		}
		files := []string{file}
		if !named {
			files = nil
			for _, in := range slices.Compact([]string{dir, "."}) {
				for _, ext := range FileExtensions() {
					files = append(files, path.Join(in, string(id)+ext))
				}
			}
		}
		n, err := b.read(dir, id, files, named)
		refused := (*RefError)(nil)
		switch {
		case errors.Is(err, fs.ErrNotExist) && named:
			report(fmt.Sprintf("no file %q, which a definition names in \"$ref\"", file), "a path in \"$ref\" is relative to the folder of the definition that it is in")
			continue
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.As(err, &refused):
			for _, p := range refused.Problems {
				report(p.Message, p.Hint)
			}
			continue
		case err != nil:
			return err
		}
		b.found[id] = n
		if err := b.definition(n.Text, path.Dir(filepath.ToSlash(n.File)), &at); err != nil {
			return err
		}
	}
	return nil
}

// A refText is a "$ref" of a definition, and its place.
type refText struct {
	text string
	at   Problem
}

// refsIn returns the texts of all members "$ref" of a definition, none if it cannot be parsed.
func refsIn(text []byte) (refs []refText) {
	src := &source{Tree: strictjson.ParseWithComments(text, strictjson.Limits{})}
	if src.Root == nil {
		return nil
	}
	var walk func(n *node)
	walk = func(n *node) {
		for _, m := range n.Members {
			if m.Name == "$ref" && m.Value.Kind == '"' {
				refs = append(refs, refText{m.Value.Text, src.problem(m.Value.Start, m.Value.Path(), KindValue, "", "")})
			}
			walk(m.Value)
		}
		for _, item := range n.Items {
			walk(item)
		}
	}
	walk(src.Root)
	return refs
}
