//go:build unix

package checkpoint

import (
	"crypto/sha1"
	"errors"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// An openedFolder is a folder that is open for reading its names and the states of what is
// in it, whatever is done to its path.
type openedFolder struct{ fd int }

const openFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

func openFolder(name string) (*openedFolder, error) {
	fd, err := openPath(name)
	return &openedFolder{fd}, err
}

func (f *openedFolder) open(name string) (*openedFolder, error) {
	fd, err := retried(func() (int, error) { return unix.Openat(f.fd, name, openFlags, 0) })
	return &openedFolder{fd}, err
}

func (f *openedFolder) close() { _ = unix.Close(f.fd) } // only read

func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// exhausted reports whether an error is about this process rather than about the folder.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// list returns what is in the folder, sorted. What vanishes meanwhile is left out.
func (f *openedFolder) list() ([]node, error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	var names []string
	for {
		n, err := retried(func() (int, error) { return unix.ReadDirent(f.fd, *buffer) })
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent((*buffer)[:n], -1, names)
	}
	slices.Sort(names)
	nodes := make([]node, 0, len(names))
	for _, name := range names {
		n, err := f.stat(name)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// stat returns the state of a name, not following a link.
func (f *openedFolder) stat(name string) (node, error) {
	var s unix.Stat_t
	if _, err := retried(func() (int, error) { return 0, unix.Fstatat(f.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return node{}, err
	}
	return nodeOf(name, &s), nil
}

// nodeOf converts a state. The sizes of folders and pipes mean nothing.
func nodeOf(name string, s *unix.Stat_t) node {
	n := node{
		name: name, kind: kindOther, mode: uint32(s.Mode), uid: s.Uid, gid: s.Gid, ino: uint64(s.Ino), //nolint:unconvert // differs by system
		mtime: s.Mtim.Nano(), ctime: s.Ctim.Nano(),
	}
	switch n.mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.kind, n.size = kindFile, s.Size
	case unix.S_IFLNK:
		n.kind, n.size = kindLink, s.Size
	case unix.S_IFDIR:
		n.kind = kindFolder
	default:
		return n
	}
	n.mode &= 0o7777
	return n
}

// gitState hashes the state of a .git, a folder or the file of a worktree.
func (f *openedFolder) gitState(n *node) [20]byte {
	var sum folder
	if n.kind != kindFolder {
		sum.nodes = []node{*n}
	} else if dir, err := f.open(n.name); err == nil {
		dir.gitNodes(&sum, gitNames, 6)
		dir.close()
	}
	return sha1.Sum(sum.encode(nil))
}

// gitNodes collects the states of names and of what is in the folders among them, down to a
// depth.
func (f *openedFolder) gitNodes(to *folder, names []string, depth int) {
	for _, name := range names {
		n, err := f.stat(name)
		if err != nil {
			continue
		}
		if n.kind != kindFolder {
			to.nodes = append(to.nodes, n)
			continue
		}
		to.nodes = append(to.nodes, node{name: name, kind: n.kind})
		sub, err := f.open(name)
		if err != nil || depth == 0 {
			continue
		}
		if list, err := sub.list(); err == nil {
			inside := make([]string, len(list))
			for i := range list {
				inside[i] = list[i].name
			}
			slices.Sort(inside)
			sub.gitNodes(to, inside, depth-1)
		}
		sub.close()
	}
}

// statFile returns the state of an open file.
func statFile(f *os.File) (node, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return node{}, err
	}
	var s unix.Stat_t
	var failed error
	err = conn.Control(func(fd uintptr) {
		_, failed = retried(func() (int, error) { return 0, unix.Fstat(int(fd), &s) })
	})
	return nodeOf("", &s), errors.Join(err, failed)
}

// readlink returns the target of a link.
func (f *openedFolder) readlink(name string) (string, error) {
	buffer := make([]byte, 64<<10) // longer than any path
	n, err := retried(func() (int, error) { return unix.Readlinkat(f.fd, name, buffer) })
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// file opens a file for reading. A pipe that has taken its place does not block.
func (f *openedFolder) file(name string) (*os.File, error) {
	fd, err := retried(func() (int, error) {
		return unix.Openat(f.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
