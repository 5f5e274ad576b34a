package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// Add puts an item at the end of a list of the configuration file, such as
// "plugins.keys", and leaves every other byte of it as it is. A file that is not
// there is made. The result is read before it takes the file's place, which it does
// as a whole; an error changes nothing.
func Add(file, key string, item any) error {
	raw, err := json.Marshal(item)
	if err != nil {
		return fmt.Errorf("add to %s: %w", key, err)
	}
	src, err := regularfile.Read(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		src, err = []byte("{}\n"), nil
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	// One that is wrong already is not made better by more of it.
	if _, err := check(file, src); err != nil {
		return err
	}
	at, text, err := place(src, strings.Split(key, "."), string(raw))
	if err != nil {
		return fmt.Errorf("add to %s: %w", key, err)
	}
	out := bytes.Join([][]byte{src[:at], []byte(text), src[at:]}, nil)
	if _, err := check(file, out); err != nil {
		return err
	}
	return replace(file, out)
}

// check reads a text as if it were the file, and nothing else beside it.
func check(file string, src []byte) (Config, error) {
	c := Default()
	r := &reader{path: file, leaves: leavesOf(&c), origins: map[string]string{}}
	if problems := r.read(src); len(problems) > 0 {
		return c, fmt.Errorf("read configuration: %s", strings.Join(problems, "\n"))
	}
	return c, nil
}

// place returns where in a text an item goes and what is written there. path leads
// to its list; what is missing of it is written with it.
func place(src []byte, path []string, item string) (at int, text string, err error) {
	d := json.NewDecoder(bytes.NewReader(src))
	if _, err := d.Token(); err != nil { // the brace
		return 0, "", err
	}
	for depth, name := range path {
		found := false
		empty := true
		for d.More() && !found {
			empty = false
			t, err := d.Token()
			if err != nil {
				return 0, "", err
			}
			if found = t == name; found {
				break
			}
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return 0, "", err
			}
		}
		pad := strings.Repeat("  ", depth+1)
		if !found {
			return missing(d, src, path[depth:], pad, item, empty)
		}
		if _, err := d.Token(); err != nil { // the brace, or the bracket of the list
			return 0, "", err
		}
	}
	empty := !d.More()
	for d.More() {
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return 0, "", err
		}
	}
	return end(d, src, strings.Repeat("  ", len(path)+1), item, empty)
}

// missing writes the rest of a path with its list.
func missing(d *json.Decoder, src []byte, path []string, pad, item string, empty bool) (int, string, error) {
	text := "[" + item + "]"
	for i := len(path) - 1; i >= 0; i-- {
		name, _ := json.Marshal(path[i]) // a string always can be
		if text = string(name) + ": " + text; i > 0 {
			text = "{" + text + "}"
		}
	}
	return end(d, src, pad, text, empty)
}

// end places a text behind the last member of an object or list: directly behind
// it, so that a comma is where people put it.
func end(d *json.Decoder, src []byte, pad, text string, empty bool) (int, string, error) {
	at := int(d.InputOffset())
	if empty {
		return at, "\n" + pad + text + "\n" + pad[2:], nil
	}
	at = len(bytes.TrimRight(src[:at], " \t\r\n"))
	return at, ",\n" + pad + text, nil
}

// replace writes a file whole or not at all. It is the user's own.
func replace(file string, content []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // the link stays
	}
	if err := atomicfile.Replace(file, content, 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}
