//go:build !unix

package checkpoint

import (
	"crypto/sha1"
	"io/fs"
	"os"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
)

// An openedFolder is a folder that is open for reading its names and the states of what is
// in it. Owners, inodes and times of change are 0 here.
type openedFolder struct{ root *os.Root }

func openFolder(name string) (*openedFolder, error) {
	root, err := os.OpenRoot(name)
	return &openedFolder{root}, err
}

func (f *openedFolder) open(name string) (*openedFolder, error) {
	root, err := rootfs.EnterFolder(f.root, name)
	return &openedFolder{root}, err
}

func (f *openedFolder) close() { _ = f.root.Close() } // only read

func exhausted(error) bool { return false }

func (f *openedFolder) list() ([]node, error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	nodes := make([]node, 0, len(names))
	for _, name := range names {
		if n, err := f.stat(name); err == nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

func nodeOf(info fs.FileInfo) node {
	n := node{mode: uint32(info.Mode().Perm()), size: info.Size(), mtime: info.ModTime().UnixNano(), kind: kindOther}
	switch {
	case info.Mode().IsRegular():
		n.kind = kindFile
	case info.Mode()&fs.ModeSymlink != 0:
		n.kind = kindLink
	case info.IsDir():
		n.kind, n.size = kindFolder, 0
	}
	return n
}

// gitState hashes the state of a .git.
func (f *openedFolder) gitState(n *node) [20]byte {
	sum := folder{nodes: []node{*n}}
	for _, name := range gitNames {
		if info, err := f.root.Lstat(n.name + "/" + name); err == nil {
			sum.nodes = append(sum.nodes, nodeOf(info))
		}
	}
	return sha1.Sum(sum.encode(nil))
}

// stat returns the state of a name, not following a link.
func (f *openedFolder) stat(name string) (node, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return node{}, err
	}
	n := nodeOf(info)
	n.name = name
	return n, nil
}

// statFile returns the state of an open file.
func statFile(f *os.File) (node, error) {
	info, err := f.Stat()
	if err != nil {
		return node{}, err
	}
	return nodeOf(info), nil
}

func (f *openedFolder) readlink(name string) (string, error) { return f.root.Readlink(name) }

func (f *openedFolder) file(name string) (*os.File, error) { return f.root.Open(name) }
