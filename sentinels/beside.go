package sentinels

import (
	"errors"
	"io/fs"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// A Neighbour is a definition file that lies beside another one.
type Neighbour struct {
	File string // without its folder
	Text []byte
}

// FileExtensions returns the extensions of files of definitions.
func FileExtensions() []string { return []string{".json", ".jsonc"} }

// refText finds what may be {"$ref": id} in the text of a definition.
var refText = lazyregexp.New(`"\$ref"\s*:\s*"([a-z0-9][a-z0-9_-]{0,63})"`)

// Beside returns the definitions that {"$ref": id} in text means if it is a file: id.json
// or id.jsonc in the same folder, and those that they refer to in turn. read reads a file of
// that folder; the error of one that does not exist is [fs.ErrNotExist].
func Beside(text []byte, read func(file string) ([]byte, error)) (map[ID]Neighbour, error) {
	found := map[ID]Neighbour{}
	return found, beside(text, read, found)
}

func beside(text []byte, read func(string) ([]byte, error), found map[ID]Neighbour) error {
	for _, m := range refText.FindAllSubmatch(text, -1) {
		id := ID(m[1])
		if _, ok := found[id]; ok {
			continue
		}
		for _, ext := range FileExtensions() {
			inner, err := read(string(id) + ext)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			found[id] = Neighbour{string(id) + ext, inner}
			if err := beside(inner, read, found); err != nil {
				return err
			}
			break
		}
	}
	return nil
}
