package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The keys of the objects of a lock, by depth: the file, then the names of files,
// which are free, then entries and what is in them.
var (
	fileKeys  = []string{"format", "plugins"}
	entryKeys = []string{"name", "version", "digest", "size", "source", "signer", "signature", "steps", "asks", "at", "next", "use", "names"}
)

// maxDepth is deeper than any lock: file, plugins, entry, next, asks, ask, names.
const maxDepth = 8

// checkKeys finds what the decoder lets pass: a key that is there twice, of which
// it would take the last, and one in another case, which it would take for ours.
func checkKeys(src []byte) error {
	d := json.NewDecoder(bytes.NewReader(src))
	type level struct {
		object bool
		key    bool // what comes next in an object is a key
		seen   map[string]bool
	}
	var stack []level
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil // how it ends is the decoder's to say
		}
		if err != nil {
			return err
		}
		top := len(stack) - 1
		switch {
		case t == json.Delim('{') || t == json.Delim('['):
			if top >= 0 {
				stack[top].key = true
			}
			if stack = append(stack, level{object: t == json.Delim('{'), key: true, seen: map[string]bool{}}); len(stack) > maxDepth {
				return fmt.Errorf("it nests deeper than %d", maxDepth)
			}
		case t == json.Delim('}') || t == json.Delim(']'):
			stack = stack[:top]
		case top >= 0 && stack[top].object && stack[top].key:
			key, _ := t.(string) // the decoder lets nothing else stand here
			if stack[top].seen[key] {
				return fmt.Errorf("%q is there twice", key)
			}
			if known := keysAt(top); known != nil && !slices.Contains(known, key) {
				return fmt.Errorf("there is no %q here", key)
			}
			stack[top].seen[key], stack[top].key = true, false
		case top >= 0:
			stack[top].key = true
		}
	}
}

// keysAt are the keys that an object so deep may have, nil for any.
func keysAt(depth int) []string {
	switch depth {
	case 0:
		return fileKeys
	case 1:
		return nil
	}
	return entryKeys
}
