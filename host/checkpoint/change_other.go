//go:build !unix

package checkpoint

import (
	"io/fs"
	"os"
)

// A fileID is the identity of a file or folder.
type fileID struct{ info fs.FileInfo }

func (id fileID) same(other fileID) bool { return os.SameFile(id.info, other.info) }

// itself returns the state and the identity of the folder.
func (f *openedFolder) itself() (node, fileID, error) {
	info, err := f.root.Stat(".")
	if err != nil {
		return node{}, fileID{}, err
	}
	return nodeOf(info), fileID{info}, nil
}

// id returns the identity of what has a name in the folder, not following a link.
func (f *openedFolder) id(name string) (fileID, error) {
	info, err := f.root.Lstat(name)
	return fileID{info}, err
}

// The changes below are of names in the folder. None of them follows a link that was there before.

func (f *openedFolder) remove(name string) error { return f.root.Remove(name) }

func (f *openedFolder) removeFolder(name string) error { return f.root.Remove(name) }

func (f *openedFolder) makeFolder(name string) error { return f.root.Mkdir(name, 0o700) }

// create makes a file, and opens it for writing.
func (f *openedFolder) create(name string) (*os.File, error) {
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (f *openedFolder) symlink(target, name string) error { return f.root.Symlink(target, name) }

func (f *openedFolder) rename(from, to string) error { return f.root.Rename(from, to) }

func (f *openedFolder) link(from, to string) error { return f.root.Link(from, to) }

func (f *openedFolder) chown(name string, uid, gid uint32) error {
	return f.root.Lchown(name, int(uid), int(gid))
}

func (f *openedFolder) chmod(name string, mode uint32) error {
	info, err := f.root.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errMeanwhile
	}
	if err != nil {
		return err
	}
	return f.root.Chmod(name, fileMode(mode))
}

// setMode gives the folder itself a mode.
func (f *openedFolder) setMode(mode uint32) error { return f.root.Chmod(".", fileMode(mode)) }
