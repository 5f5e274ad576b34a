package grant

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxFile bounds grants.json in bytes, maxEntries its plugins.
const (
	maxFile    = 4 << 20
	maxEntries = 1000
)

// document is the whole file.
type document struct {
	Format  int              `json:"format"`
	Plugins map[string]Entry `json:"plugins"`
}

// decode reads the file strictly: it says what programs may do, so nothing in it
// is passed over.
func decode(src []byte) (document, error) {
	d := document{Format: format, Plugins: map[string]Entry{}}
	if len(src) > maxFile {
		return d, fmt.Errorf("it has %d bytes, at most %d are read", len(src), maxFile)
	}
	var number struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(src, &number); err != nil {
		return d, err
	}
	if number.Format != format {
		return d, fmt.Errorf("its format is %d, this release reads %d", number.Format, format)
	}
	if err := single(json.NewDecoder(bytes.NewReader(src)), 0); err != nil {
		return d, err
	}
	in := json.NewDecoder(bytes.NewReader(src))
	in.DisallowUnknownFields()
	if err := in.Decode(&d); err != nil {
		return d, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return d, errors.New("there is text behind the JSON value")
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

// single refuses a key that is there twice, also in another case: of two words
// on one thing nobody knows which one counts.
func single(in *json.Decoder, depth int) error {
	t, err := in.Token()
	if err != nil {
		return err
	}
	if depth > 32 {
		return errors.New("it is nested too deeply")
	}
	open, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for in.More() {
		if open == '{' {
			key, err := in.Token()
			if err != nil {
				return err
			}
			folded := strings.ToLower(key.(string))
			if seen[folded] {
				return fmt.Errorf("the key %.80q is there twice", key)
			}
			seen[folded] = true
		}
		if err := single(in, depth+1); err != nil {
			return err
		}
	}
	_, err = in.Token()
	return err
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
	f, err := os.Open(s.opt.File)
	if errors.Is(err, fs.ErrNotExist) {
		return document{Format: format, Plugins: map[string]Entry{}}, nil
	}
	if err != nil {
		return document{}, s.unreadable(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return document{}, s.unreadable(errors.New("it is no regular file"))
	}
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return document{}, s.unreadable(err)
	}
	d, err := decode(src)
	if err != nil {
		return document{}, s.unreadable(err)
	}
	return d, nil
}

// unreadable is the error of a file that says nothing that counts: whoever asks
// for anything is denied.
func (s *Store) unreadable(cause error) error {
	return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("read grants %q: %v", s.opt.File, cause),
		Hint: "mend the file, or delete it and allow the plugins again: sentinel plugin list"}
}
