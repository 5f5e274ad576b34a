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

// maxLinks is the maximum number of symbolic links in one path, as in Linux.
const maxLinks = 40

// An Entry is a resolved path: an open folder and a name in it that was not a
// link when it was resolved. Access through Dir stays below that folder, even if
// the folder is moved or replaced. The caller closes it.
type Entry struct {
	Dir   *os.Root
	Name  string      // "." is the folder itself
	Path  string      // relative to the tree, with links resolved
	Info  fs.FileInfo // nil: the file does not exist
	trail []*os.Root  // the folders opened to resolve it, including Dir
}

// Close closes the folders that were opened to resolve the path. The tree stays
// open.
func (p *Entry) Close() {
	for _, r := range p.trail {
		_ = r.Close() // nothing was written through it
	}
}

// A walk is the state of resolving one path.
type walk struct {
	t       *Tree
	asked   string     // the path as the caller wrote it
	dirs    []*os.Root // from the tree's root down; the walk does not close the root
	names   []string
	opened  []*os.Root
	pending []string
	links   int
}

// Resolve resolves name component by component, including links, so that the real
// path is known and no link can be swapped between check and use. With create, it
// makes missing parent folders, unless a rule forbids to write there.
func (t *Tree) Resolve(name string, create bool) (*Entry, error) {
	rel, err := t.Relative(name)
	if err != nil {
		return nil, err
	}
	k := &walk{t: t, asked: name, dirs: []*os.Root{t.root}, pending: strings.Split(rel, "/")}
	p, err := k.run(create)
	if err != nil {
		for _, r := range k.opened {
			_ = r.Close() // as in Entry.Close
		}
		return nil, t.Explain(name, err)
	}
	p.trail = k.opened
	return p, nil
}

// run resolves one component after the other; the last one may be missing. The
// returned entry was not a link. If a link has replaced it since, [os.Root] keeps
// the access below Dir.
func (k *walk) run(create bool) (*Entry, error) {
	for {
		part, ok := k.next()
		if !ok {
			info, err := k.top().Stat(".")
			if err != nil {
				return nil, err
			}
			return &Entry{Dir: k.top(), Name: ".", Path: k.at("."), Info: info}, nil
		}
		if part == ".." {
			if len(k.names) == 0 {
				return nil, k.t.Outside(k.asked)
			}
			k.dirs, k.names = k.dirs[:len(k.dirs)-1], k.names[:len(k.names)-1]
			continue
		}
		info, err := k.top().Lstat(part)
		last := k.last()
		switch {
		case errors.Is(err, fs.ErrNotExist) && last:
			return &Entry{Dir: k.top(), Name: part, Path: k.at(part)}, nil
		case errors.Is(err, fs.ErrNotExist) && create:
			info, err = k.mkdir(part)
			if err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0 && last && k.t.rules.DenyLink:
			return nil, denied(k.asked, "it is a link")
		case info.Mode()&fs.ModeSymlink != 0:
			if err := k.follow(part); err != nil {
				return nil, err
			}
		case k.t.excluded(info):
			return nil, &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: it belongs to the host", k.asked)}
		case last:
			return &Entry{Dir: k.top(), Name: part, Path: k.at(part), Info: info}, nil
		case !info.IsDir():
			return nil, &abi.Error{Code: abi.NotFound, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: %q is not a folder", k.asked, k.at(part))}
		default:
			if err := k.enter(part, info); err != nil {
				return nil, err
			}
		}
	}
}

// next removes and returns the next component that is neither empty nor ".".
func (k *walk) next() (string, bool) {
	for len(k.pending) > 0 {
		part := k.pending[0]
		k.pending = k.pending[1:]
		if part != "" && part != "." {
			return part, true
		}
	}
	return "", false
}

// last reports whether only empty components and "." are left.
func (k *walk) last() bool {
	return !slices.ContainsFunc(k.pending, func(part string) bool { return part != "" && part != "." })
}

// top is the current folder.
func (k *walk) top() *os.Root { return k.dirs[len(k.dirs)-1] }

// at is the real path of a name in the current folder.
func (k *walk) at(part string) string { return path.Join(path.Join(k.names...), part) }

// enter opens a folder and checks that it is the one that was checked before.
func (k *walk) enter(part string, seen fs.FileInfo) error {
	sub, err := openSame(k.top(), part, seen)
	if errors.Is(err, errReplaced) {
		return &abi.Error{Code: abi.Conflict, Field: "path", Message: fmt.Sprintf("open %q: %q was replaced during the call", k.asked, k.at(part))}
	}
	if err != nil {
		return err
	}
	k.opened = append(k.opened, sub)
	k.dirs, k.names = append(k.dirs, sub), append(k.names, part)
	return nil
}

// follow replaces a link with its target.
func (k *walk) follow(part string) error {
	if k.links++; k.links > maxLinks {
		return &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: more than %d links", k.asked, maxLinks)}
	}
	target, err := k.top().Readlink(part)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		inside, ok := k.t.inside(filepath.Clean(target))
		if !ok {
			return k.t.Outside(k.asked)
		}
		target, k.dirs, k.names = inside, k.dirs[:1], nil
	}
	k.pending = append(strings.Split(filepath.ToSlash(target), "/"), k.pending...)
	return nil
}

// mkdir makes one parent folder of a file that the rules allow to write.
func (k *walk) mkdir(part string) (fs.FileInfo, error) {
	full := k.at(path.Join(append([]string{part}, k.pending...)...))
	if err := k.t.rules.write(full); err != nil {
		return nil, err
	}
	if err := k.top().Mkdir(part, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return k.top().Lstat(part)
}
