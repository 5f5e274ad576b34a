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

// maxLinks is how many symbolic links one path may lead through, as in Linux.
const maxLinks = 40

// A Place is where a path really leads: an open folder and a name in it that was
// no link when it was looked at. Everything done through Dir stays below that
// very folder, also when somebody moves or replaces it. Close it.
type Place struct {
	Dir   *os.Root
	Name  string      // "." is the folder itself
	Path  string      // from the tree's top, with links resolved
	Info  fs.FileInfo // nil: nothing is there yet
	trail []*os.Root  // opened on the way, Dir among them
}

// Close closes what was opened on the way. The tree stays open.
func (p *Place) Close() {
	for _, r := range p.trail {
		_ = r.Close() // opened only to look; nothing was written through it
	}
}

// walk is the state of following one path.
type walk struct {
	t       *Tree
	asked   string
	dirs    []*os.Root // from the workspace's root down; the root is not ours to close
	names   []string
	opened  []*os.Root
	pending []string
	links   int
}

// Locate follows name part by part, links by hand, so that the real path is
// known and no link can be swapped between the check and the use. With create,
// missing folders on the way are made, unless a rule forbids writing there.
func (t *Tree) Locate(name string, create bool) (*Place, error) {
	rel, err := t.Relative(name)
	if err != nil {
		return nil, err
	}
	k := &walk{t: t, asked: name, dirs: []*os.Root{t.root}, pending: strings.Split(rel, "/")}
	p, err := k.run(create)
	if err != nil {
		for _, r := range k.opened {
			_ = r.Close() // as in Place.Close
		}
		return nil, t.Explain(name, err)
	}
	p.trail = k.opened
	return p, nil
}

// run takes one part after the other until the last one, which may be missing.
// What it returns names no link: the last look said so, and a link put there
// since leads no further than Dir.
func (k *walk) run(create bool) (*Place, error) {
	for {
		part, ok := k.next()
		if !ok {
			info, err := k.top().Stat(".")
			if err != nil {
				return nil, err
			}
			return &Place{Dir: k.top(), Name: ".", Path: k.at("."), Info: info}, nil
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
			return &Place{Dir: k.top(), Name: part, Path: k.at(part)}, nil
		case errors.Is(err, fs.ErrNotExist) && create:
			info, err = k.mkdir(part)
			if err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0 && last && k.t.rules.NoLink:
			return nil, odd(k.asked, "is a link")
		case info.Mode()&fs.ModeSymlink != 0:
			if err := k.follow(part); err != nil {
				return nil, err
			}
		case k.t.shut(info):
			return nil, &abi.Error{Code: abi.Denied, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: belongs to the host", k.asked)}
		case last:
			return &Place{Dir: k.top(), Name: part, Path: k.at(part), Info: info}, nil
		case !info.IsDir():
			return nil, &abi.Error{Code: abi.NotFound, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: %q is no folder", k.asked, k.at(part))}
		default:
			if err := k.enter(part, info); err != nil {
				return nil, err
			}
		}
	}
}

// next takes the next part that means something.
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

// last reports whether nothing that means something is left.
func (k *walk) last() bool {
	return !slices.ContainsFunc(k.pending, func(part string) bool { return part != "" && part != "." })
}

// top is the folder the walk stands in.
func (k *walk) top() *os.Root { return k.dirs[len(k.dirs)-1] }

// at is the real path of a name in the folder the walk stands in.
func (k *walk) at(part string) string { return path.Join(path.Join(k.names...), part) }

// enter opens a folder and makes sure it is the one that was looked at.
func (k *walk) enter(part string, seen fs.FileInfo) error {
	sub, err := k.top().OpenRoot(part)
	if err != nil {
		return err
	}
	k.opened = append(k.opened, sub)
	info, err := sub.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(seen, info) {
		return &abi.Error{Code: abi.Conflict, Field: "path", Message: fmt.Sprintf("open %q: %q changed meanwhile", k.asked, k.at(part))}
	}
	k.dirs, k.names = append(k.dirs, sub), append(k.names, part)
	return nil
}

// follow replaces a link by what it points to.
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

// mkdir makes one folder on the way to a file that may be written.
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
