package sentinels

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A NoFileError is the error of a "$ref" to a file that is not there.
type NoFileError struct{ File string }

func (e *NoFileError) Error() string {
	return fmt.Sprintf("no file %q in the folder of the definition that names it in \"$ref\"", e.File)
}

// A Neighbour is a definition file that lies beside another one.
type Neighbour struct {
	File string // relative to the folder of the other one
	Text []byte
}

// FileExtensions returns the extensions of files of definitions.
func FileExtensions() []string { return []string{".json", ".jsonc"} }

// refFile returns the id of a sentinel whose file a "$ref" names: "./child.json", in the folder of the
// file that it is in, with its extension. Only the id is stored, since a stored sentinel has no folder.
// The id of a path that leads to another folder is invalid.
func refFile(ref string) (id ID, ext string, is bool) {
	for _, ext := range FileExtensions() {
		if name, ok := strings.CutSuffix(ref, ext); ok {
			return ID(strings.TrimPrefix(name, "./")), ext, true
		}
	}
	return ID(ref), "", strings.ContainsAny(ref, `/\`)
}

// Beside returns the definitions that {"$ref": id} in text means if it is a file: id.json
// or id.jsonc in the same folder, and those that they refer to in turn. read reads the first of
// files that exists; named says that "$ref" names the one file, which is in the same folder then and must
// exist. The error of files that do not exist is [fs.ErrNotExist]. An error of read ends it: read bounds what is read.
func Beside(text []byte, read func(id ID, files []string, named bool) (Neighbour, error)) (map[ID]Neighbour, error) {
	found := map[ID]Neighbour{}
	return found, beside(text, read, found)
}

func beside(text []byte, read func(ID, []string, bool) (Neighbour, error), found map[ID]Neighbour) error {
	for _, ref := range refsIn(text) {
		id, ext, named := refFile(ref)
		if _, ok := found[id]; ok || !id.Valid() { // the decoder reports an invalid one
			continue
		}
		files := []string{string(id) + ext}
		if !named {
			files = nil
			for _, ext := range FileExtensions() {
				files = append(files, string(id)+ext)
			}
		}
		n, err := read(id, files, named)
		switch {
		case errors.Is(err, fs.ErrNotExist) && named:
			return &NoFileError{files[0]}
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		found[id] = n
		if err := beside(n.Text, read, found); err != nil {
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
