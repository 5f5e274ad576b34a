//go:build unix

package shell

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity returns a text that is the same for a file under another name.
func identity(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}
