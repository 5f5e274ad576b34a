package files

import (
	"io/fs"
	"syscall"
)

// changeTime returns the change time, in nanoseconds since 1970, and the inode.
func changeTime(info fs.FileInfo) (changed int64, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ctim.Nano(), st.Ino
}
