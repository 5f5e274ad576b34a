package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// FileName is the lock's name in the folder of the plugins.
const FileName = "plugins.lock.json"

// format is the number of the form that this program writes. One with another
// number is refused, since it may mean something else.
const format = 1

// The bounds of what is read, in bytes and entries.
const (
	MaxModule  = 32 << 20 // of a module; the engine's own limit
	maxFile    = 4 << 20
	maxEntries = 1000
)

// limits bound a lock's text. Eight levels are more than any lock has: file,
// plugins, entry, next, permissions, permission, names.
var limits = strictjson.Limits{Bytes: maxFile, Depth: 8, Keys: 200_000}

// A File is the contents of a lock.
type File struct {
	Format int `json:"format"`
	// Plugins are by the name of their file, without a folder.
	Plugins map[string]Entry `json:"plugins"`
}

// An Entry is what was installed as one file.
type Entry struct {
	Name    string `json:"name,omitempty"` // the plugin's own
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"` // see [Digest]; "" only while the first version is being written
	Size    int64  `json:"size,omitempty"`   // bytes
	Source  string `json:"source,omitempty"` // path, URL or reference that it came from, without credentials
	Signer  string `json:"signer,omitempty"` // id of the key that signed it; "" for none
	// Signature is the signature as it came, so that it can be checked again.
	Signature   string       `json:"signature,omitempty"`
	Steps       []string     `json:"steps,omitempty"` // step types
	Permissions []Permission `json:"permissions,omitempty"`
	At          time.Time    `json:"at,omitzero"`
	// Next is the version that is being written; a module that is either is good.
	Next *Entry `json:"next,omitempty"`
}

// A Permission is what a plugin asks for, without its reason.
type Permission struct {
	Use   string   `json:"use"`
	Names []string `json:"names,omitempty"`
}

// Digest names content: "sha256:" and 64 hexadecimal digits.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

var (
	digestForm = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
	bareForm   = lazyregexp.New(`^[0-9a-f]{64}$`)
	nameForm   = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\.wasm$`)
	plainForm  = lazyregexp.New(`^[a-z][a-z0-9_]{0,63}$`)
)

// ParseDigest reads a digest with or without its algorithm.
func ParseDigest(s string) (string, error) {
	if bareForm.MatchString(s) {
		s = "sha256:" + s
	}
	if !digestForm.MatchString(s) {
		return "", fmt.Errorf("read digest %q: want sha256: and 64 hexadecimal digits", s)
	}
	return s, nil
}

// ValidName reports whether a module may be kept under a name: one that is a file
// name everywhere, hidden nowhere, and visible to watchers of the folder.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Decode reads a lock. It is strict: what another program understands differently
// is refused.
func Decode(src []byte) (File, error) {
	var number struct {
		Format int `json:"format"`
	}
	if err := strictjson.DecodeOpen(src, &number, limits); err != nil {
		return File{}, err
	}
	if number.Format != format { // another format may have other keys
		return File{}, fmt.Errorf("it has format %d, this program reads %d", number.Format, format)
	}
	var f File
	if err := strictjson.Decode(src, &f, limits); err != nil {
		return File{}, err
	}
	if len(f.Plugins) > maxEntries {
		return File{}, fmt.Errorf("it has %d entries, at most %d are allowed", len(f.Plugins), maxEntries)
	}
	for name, e := range f.Plugins {
		if !ValidName(name) {
			return File{}, fmt.Errorf("invalid name of a plugin file %q", name)
		}
		if err := e.check(true); err != nil {
			return File{}, fmt.Errorf("entry %q: %w", name, err)
		}
	}
	return f, nil
}

// check finds what no install would have written. The version that is being
// written is an entry too, and has none that follows it.
func (e Entry) check(outer bool) error {
	if e.Digest == "" && outer && e.Next != nil {
		return e.Next.check(false)
	}
	switch {
	case !digestForm.MatchString(e.Digest):
		return fmt.Errorf("invalid digest %q: want sha256: and 64 hexadecimal digits", e.Digest)
	case !plainForm.MatchString(e.Name):
		return fmt.Errorf("invalid plugin name %q", e.Name)
	case e.Size < 1 || e.Size > MaxModule:
		return fmt.Errorf("size %d is that of no module", e.Size)
	case e.Next != nil && !outer:
		return errors.New("the next version has a next version")
	case e.Next != nil:
		return e.Next.check(false)
	}
	return nil
}

// encode writes the lock: sorted, indented, with a line end, so that its diffs are
// small.
func (f File) encode() ([]byte, error) {
	if f.Plugins == nil {
		f.Plugins = map[string]Entry{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	if _, err := Decode(b.Bytes()); err != nil {
		return nil, fmt.Errorf("it would not be read again: %w", err)
	}
	return b.Bytes(), nil
}
