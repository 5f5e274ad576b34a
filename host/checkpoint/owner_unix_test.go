//go:build unix

package checkpoint_test

import (
	"fmt"
	"os"
	"syscall"
)

// owner is the owner of a file, unless that is the user of the test.
func owner(info os.FileInfo) string {
	if s := info.Sys().(*syscall.Stat_t); int(s.Uid) != os.Getuid() || int(s.Gid) != os.Getgid() {
		return fmt.Sprintf(" %d:%d", s.Uid, s.Gid)
	}
	return ""
}
