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

// A RefError is the error of a "$ref" to a file that is not there, or to one of several of the same sentinel.
type RefError struct{ Message string }

func (e *RefError) Error() string { return e.Message }

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
// files that exists, which are relative to the folder of text; named says that "$ref" names the one file, which must
// exist then. It bounds what is read, and refuses files outside of what the caller allows. The error of files that do not exist is
// [fs.ErrNotExist].
func Beside(text []byte, read func(id ID, files []string, named bool) (Neighbour, error)) (map[ID]Neighbour, error) {
	found := map[ID]Neighbour{}
	return found, beside(text, ".", read, found)
}

// beside adds the definitions that text refers to, which is in the folder dir.
func beside(text []byte, dir string, read func(ID, []string, bool) (Neighbour, error), found map[ID]Neighbour) error {
	for _, ref := range refsIn(text) {
		id, file, named := refFile(ref)
		if !id.Valid() { // the decoder reports it
			continue
		}
		file = path.Join(dir, file)
		if n, ok := found[id]; ok {
			if named && filepath.ToSlash(n.File) != file {
				return &RefError{fmt.Sprintf("%q in \"$ref\" is not the only file of sentinel %q, which %q is too: give one of them another name and id", file, id, n.File)}
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
		n, err := read(id, files, named)
		switch {
		case errors.Is(err, fs.ErrNotExist) && named:
			return &RefError{fmt.Sprintf("no file %q, which a definition names in \"$ref\", relative to the folder of the definition", file)}
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		found[id] = n
		if err := beside(n.Text, path.Dir(filepath.ToSlash(n.File)), read, found); err != nil {
			return err
		}
	}
	return nil
}

// refsIn returns the texts of all members "$ref" of a definition, none if it cannot be parsed.
func refsIn(text []byte) (refs []string) {
	root := strictjson.ParseWithComments(text, strictjson.Limits{}).Root
	if root == nil {
		return nil
	}
	var walk func(n *node)
	walk = func(n *node) {
		for _, m := range n.Members {
			if m.Name == "$ref" && m.Value.Kind == '"' {
				refs = append(refs, m.Value.Text)
			}
			walk(m.Value)
		}
		for _, item := range n.Items {
			walk(item)
		}
	}
	walk(root)
	return refs
}
