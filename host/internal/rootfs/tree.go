package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Rules say what may be touched in a tree, and how its errors sound.
type Rules struct {
	// Outside ends the error for a path that leads out, Hint is its hint. Default
	// "outside the folder" and none.
	Outside, Hint string
	// Missing makes the error for what is not there. Default: one that names it.
	Missing func(name string) error
	// Folder is the hint where a folder is in the place of a file.
	Folder string
	// Write refuses to change what is at a path, which has its links resolved and
	// may not exist. Default: nothing is refused.
	Write func(name string) error
	// NoLink refuses a path whose last part is a link.
	NoLink bool
	// Shut are folders that are not entered and files that are not opened, however
	// they are called here.
	Shut []fs.FileInfo
}

// write asks the rule, if there is one.
func (r *Rules) write(name string) error {
	if r.Write == nil {
		return nil
	}
	return r.Write(name)
}

// A Tree is a folder with all that is below it. Close it.
//
// # Concurrency
//
// A Tree serves one call at a time.
type Tree struct {
	root  *os.Root
	base  string // absolute, for links that are
	rules Rules
}

// Open opens the folder once for all that is done with it, so that renaming it
// meanwhile changes nothing.
func Open(dir string, rules Rules) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return Of(root, dir, rules), nil
}

// Of returns the tree of a folder that is open; base is its absolute path. The
// tree closes root.
func Of(root *os.Root, base string, rules Rules) *Tree {
	if rules.Outside == "" {
		rules.Outside = "outside the folder"
	}
	return &Tree{root: root, base: base, rules: rules}
}

// Close ends the access. Files opened through it stay open.
func (t *Tree) Close() error { return t.root.Close() }

// Root returns the open folder. What is done through it is not held to the rules.
func (t *Tree) Root() *os.Root { return t.root }

// Relative turns what a caller wrote into a slash path below the folder. An
// absolute path is fine if it points inside.
func (t *Tree) Relative(name string) (string, error) {
	if name == "" {
		name = "."
	}
	if strings.ContainsRune(name, 0) {
		return "", &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: "open: path contains a zero byte"}
	}
	if filepath.IsAbs(name) {
		inside, ok := t.inside(name)
		if !ok {
			return "", t.Outside(name)
		}
		name = inside
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", t.Outside(name)
	}
	return path.Clean(filepath.ToSlash(name)), nil
}

// inside returns the part of an absolute path below the folder.
func (t *Tree) inside(name string) (string, bool) {
	// People write the path as they know it, programs as they found it.
	for _, base := range []string{t.base, Real(t.base)} {
		rel, err := filepath.Rel(base, name)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// Real follows the links of a path as far as there are any. It is for paths that
// the operator chose: what it returns may have changed when it is used.
func Real(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	// The last part may be what is going to be made.
	if dir := filepath.Dir(name); dir != name {
		return filepath.Join(Real(dir), filepath.Base(name))
	}
	return name
}

// shut reports whether something is one of those that are not touched.
func (t *Tree) shut(info fs.FileInfo) bool {
	return slices.ContainsFunc(t.rules.Shut, func(s fs.FileInfo) bool { return os.SameFile(s, info) })
}

// Outside is the one error for every way of leaving the folder, so that it does
// not tell what is there.
func (t *Tree) Outside(name string) error {
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true,
		Message: fmt.Sprintf("open %q: %s", name, t.rules.Outside), Hint: t.rules.Hint,
	}
}

// Missing is the error for what is not there.
func (t *Tree) Missing(name string) error {
	if t.rules.Missing != nil {
		return t.rules.Missing(name)
	}
	return &abi.Error{Code: abi.NotFound, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: no such file", name)}
}

// Explain gives an error of the file system words and a code.
func (t *Tree) Explain(name string, err error) error {
	switch {
	case abi.As(err) != nil:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return t.Missing(name)
	// Only a link that came after the last look leads here.
	case strings.Contains(err.Error(), "escapes"): // os.Root has no name for it
		return t.Outside(name)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err // the path in it is a single name, ours is the whole
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		err = l.Err // likewise, with the name of the temporary file
	}
	return fmt.Errorf("open %q: %w", name, err)
}

// odd is the refusal of what is neither a file nor a folder.
func odd(name, why string) error {
	return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: %s", name, why)}
}
