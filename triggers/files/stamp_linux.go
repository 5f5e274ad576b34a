package files

import (
	"io/fs"
	"syscall"
)

// system returns the change time, in nanoseconds, and the inode.
func system(info fs.FileInfo) (changed int64, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ctim.Nano(), st.Ino
}
