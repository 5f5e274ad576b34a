//go:build unix && !aix && !solaris && !illumos

package lock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryHold takes the operating system's lock on the folder itself, so that no
// file of ours is left beside the plugins. It ends with the file, and with the
// process.
func tryHold(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errBusy
	}
	return err
}
