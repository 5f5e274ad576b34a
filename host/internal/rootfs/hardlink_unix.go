//go:build unix

package rootfs

import (
	"io/fs"
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
