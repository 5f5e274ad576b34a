package grant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxFile bounds grants.json in bytes, maxEntries its plugins.
const (
	maxFile    = 4 << 20
	maxEntries = 1000
)

var limits = strictjson.Limits{Bytes: maxFile, Depth: 32, Keys: 200_000}

// document is the whole file.
type document struct {
	Format  int              `json:"format"`
	Plugins map[string]Entry `json:"plugins"`

	written []string // plugins whose entry put has written
}

// decode reads the file strictly, because it grants permissions: nothing in it is
// ignored.
func decode(src []byte) (document, error) {
	d := document{Format: format, Plugins: map[string]Entry{}}
	var number struct {
		Format int `json:"format"`
	}
	if err := strictjson.DecodeOpen(src, &number, limits); err != nil {
		return d, err
	}
	if number.Format != format {
		return d, fmt.Errorf("its format is %d, this release reads %d", number.Format, format)
	}
	if err := strictjson.Decode(src, &d, limits); err != nil {
		return d, err
	}
	if d.Plugins == nil {
		d.Plugins = map[string]Entry{}
	}
	if len(d.Plugins) > maxEntries {
		return d, fmt.Errorf("it has %d plugins, at most %d are read", len(d.Plugins), maxEntries)
	}
	for name, e := range d.Plugins {
		e.Name = name
		d.Plugins[name] = e
	}
	return d, nil
}

// encode writes the file as people read it: indented, plugins by name.
func encode(d document) ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(d)
	return b.Bytes(), err
}

// read returns the file's document, an empty one if there is no file.
func (s *Store) read() (document, error) {
	src, err := s.opt.Trust.Read(s.opt.File, maxFile+1) // the decoder names the limit
	if errors.Is(err, fs.ErrNotExist) {
		return document{Format: format, Plugins: map[string]Entry{}}, nil
	}
	if err != nil {
		return document{}, s.unreadable(err)
	}
	d, err := decode(src)
	if err != nil {
		return document{}, s.unreadable(err)
	}
	return d, nil
}

// unreadable is the error of a file without a valid entry: a plugin that asks
// for anything is denied.
func (s *Store) unreadable(cause error) error {
	return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("read grants %q: %v", s.opt.File, cause),
		Hint: "mend the file, or delete it and allow the plugins again: sentinel plugin list"}
}
