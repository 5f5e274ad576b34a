//go:build unix

package rootfs

import (
	"io/fs"
	"os"
	"syscall"
)

// links returns the number of hard links of a file.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}

// ignoreUnsupported returns err: folders can be synced on this system.
func ignoreUnsupported(err error) error { return err }

// keepOwner gives a new file the owner and group of the one that it replaces.
func keepOwner(f *os.File, before fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	want, ok := before.Sys().(*syscall.Stat_t)
	have, same := now.Sys().(*syscall.Stat_t)
	if !ok || !same || want.Uid == have.Uid && want.Gid == have.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
