//go:build unix

package grant

import (
	"io/fs"
	"os"
	"syscall"
)

// othersMay reports whether a file is open to anyone but this user.
func othersMay(info fs.FileInfo) bool {
	if info.Mode().Perm()&0o077 != 0 {
		return true
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid != 0 && int(s.Uid) != os.Geteuid()
}
