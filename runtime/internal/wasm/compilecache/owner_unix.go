//go:build unix

package compilecache

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwner reports whether this user owns a file.
func isOwner(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
