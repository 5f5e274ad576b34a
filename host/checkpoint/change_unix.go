//go:build unix

package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

// A fileID is the identity of a file or folder.
type fileID struct{ device, inode uint64 }

func (id fileID) same(other fileID) bool { return id == other }

func idOf(s *unix.Stat_t) fileID { return fileID{uint64(s.Dev), uint64(s.Ino)} } //nolint:unconvert // differs by system

// itself returns the state and the identity of the folder.
func (f *openedFolder) itself() (node, fileID, error) {
	var s unix.Stat_t
	_, err := retried(func() (int, error) { return 0, unix.Fstat(f.fd, &s) })
	return nodeOf("", &s), idOf(&s), err
}

// id returns the identity of what has a name in the folder, not following a link.
func (f *openedFolder) id(name string) (fileID, error) {
	var s unix.Stat_t
	_, err := retried(func() (int, error) { return 0, unix.Fstatat(f.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) })
	return idOf(&s), err
}

// The changes below are of names in the folder. None of them follows a link.

func (f *openedFolder) remove(name string) error { return f.unlink(name, 0) }

func (f *openedFolder) removeFolder(name string) error { return f.unlink(name, unix.AT_REMOVEDIR) }

func (f *openedFolder) unlink(name string, flags int) error {
	return trash.Again(func() error { return unix.Unlinkat(f.fd, name, flags) })
}

func (f *openedFolder) makeFolder(name string) error {
	return trash.Again(func() error { return unix.Mkdirat(f.fd, name, 0o700) })
}

// create makes a file, and opens it for writing.
func (f *openedFolder) create(name string) (*os.File, error) {
	fd, err := retried(func() (int, error) {
		return unix.Openat(f.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (f *openedFolder) symlink(target, name string) error {
	return trash.Again(func() error { return unix.Symlinkat(target, f.fd, name) })
}

func (f *openedFolder) rename(from, to string) error {
	return trash.Again(func() error { return unix.Renameat(f.fd, from, f.fd, to) })
}

func (f *openedFolder) link(from, to string) error {
	return trash.Again(func() error { return unix.Linkat(f.fd, from, f.fd, to, 0) })
}

func (f *openedFolder) chown(name string, uid, gid uint32) error {
	return trash.Again(func() error { return unix.Fchownat(f.fd, name, int(uid), int(gid), unix.AT_SYMLINK_NOFOLLOW) })
}

func (f *openedFolder) chmod(name string, mode uint32) error {
	return trash.Again(func() error { return trash.Chmod(f.fd, name, mode) })
}

// setMode gives the folder itself a mode.
func (f *openedFolder) setMode(mode uint32) error {
	return trash.Again(func() error { return unix.Fchmod(f.fd, mode) })
}
