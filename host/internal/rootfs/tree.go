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

	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Rules restrict the access to a tree and set the texts of its errors.
type Rules struct {
	// Outside is the last part of the error for a path that leads out of the tree.
	// Default "outside the folder". Hint is the hint of that error.
	Outside, Hint string
	// Missing returns the error for a missing file. Default: one that names it.
	Missing func(name string) error
	// Folder is the hint of the error for a folder where a file is wanted.
	Folder string
	// Write returns an error for a path that must not be changed. The path has its
	// links resolved and may not exist. Default: every path may be changed.
	Write func(name string) error
	// DenyLink denies paths whose last component is a link.
	DenyLink bool
	// Excluded are folders that are not entered and files that are not opened, by
	// whatever name.
	Excluded []fs.FileInfo
}

// write applies the rule Write, if there is one.
func (r *Rules) write(name string) error {
	if r.Write == nil {
		return nil
	}
	return r.Write(name)
}

// A Tree is a folder that file access is confined to. The caller closes it.
//
// # Concurrency
//
// A Tree must not be used concurrently.
type Tree struct {
	root  *os.Root
	base  string // absolute, to resolve absolute links
	rules Rules
}

// Open opens a folder. The tree stays on that folder if it is renamed later.
func Open(dir string, rules Rules) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return New(root, dir, rules), nil
}

// New returns the tree of a folder that is open; base is its absolute path. The
// tree closes root.
func New(root *os.Root, base string, rules Rules) *Tree {
	if rules.Outside == "" {
		rules.Outside = "outside the folder"
	}
	return &Tree{root: root, base: base, rules: rules}
}

// Close closes the folder. Files opened through the tree stay open.
func (t *Tree) Close() error { return t.root.Close() }

// Root returns the open folder. The rules do not apply to access through it.
func (t *Tree) Root() *os.Root { return t.root }

// Relative returns a caller's path as a slash path relative to the folder. An
// absolute path is valid if it is inside the folder. The caller's path may have bytes
// that are not UTF-8 as [pathtext.Encode] writes them; the result has the bytes.
func (t *Tree) Relative(name string) (string, error) {
	name = pathtext.Decode(name)
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
	// Users write the path with links; programs often write it with links resolved.
	for _, base := range []string{t.base, EvalLinks(t.base)} {
		rel, err := filepath.Rel(base, name)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// EvalLinks resolves the links of a path whose last components may be missing. It
// is only for paths that the operator chose: the result may be outdated when it
// is used.
func EvalLinks(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	// The last component may not exist yet.
	if dir := filepath.Dir(name); dir != name {
		return filepath.Join(EvalLinks(dir), filepath.Base(name))
	}
	return name
}

// LinksOf returns the links that are followed to find a path, each in its folder without links. Like
// [EvalLinks] it is for paths that the operator chose, whose last components may be missing.
func LinksOf(name string) (links []string) {
	at, rest := splitRoot(name)
	for steps := 0; len(rest) > 0 && steps < 1000; steps++ { // a link may lead to itself
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		links = append(links, next)
		root, parts := splitRoot(target)
		if root != "" {
			at = root
		}
		rest = append(parts, rest...)
	}
	return links
}

// splitRoot splits a path into its root, "" if it is relative, and the names behind it.
func splitRoot(name string) (root string, parts []string) {
	slash := filepath.ToSlash(name)
	if volume := filepath.VolumeName(name); filepath.IsAbs(name) {
		root, slash = volume+string(filepath.Separator), slash[len(volume):]
	}
	return root, strings.Split(slash, "/")
}

// excluded reports whether a file is one of [Rules.Excluded].
func (t *Tree) excluded(info fs.FileInfo) bool {
	return slices.ContainsFunc(t.rules.Excluded, func(s fs.FileInfo) bool { return os.SameFile(s, info) })
}

// Outside is the error for every path that leads out of the folder. It is always
// the same, so that it does not reveal what exists there.
func (t *Tree) Outside(name string) error {
	return &abi.Error{
		Code: abi.Denied, Field: "path", Permanent: true,
		Message: fmt.Sprintf("open %q: %s", name, t.rules.Outside), Hint: t.rules.Hint,
	}
}

// Missing is the error for a missing file.
func (t *Tree) Missing(name string) error {
	if t.rules.Missing != nil {
		return t.rules.Missing(name)
	}
	return &abi.Error{Code: abi.NotFound, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: no such file", name)}
}

// Explain turns an error of the file system into one with a code and the caller's
// path.
func (t *Tree) Explain(name string, err error) error {
	switch {
	case abi.As(err) != nil:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return t.Missing(name)
	// This happens only if a link was created after the check.
	case strings.Contains(err.Error(), "escapes"): // os.Root has no exported error for it
		return t.Outside(name)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err // its path is a single name; the error names the whole path
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		err = l.Err // it names the temporary file
	}
	return fmt.Errorf("open %q: %w", name, err)
}

// denied is the error for a path that must not be accessed.
func denied(name, why string) error {
	return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: %s", name, why)}
}
