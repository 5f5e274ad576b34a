package trash

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Chmod changes the mode of a folder in a folder, and never that of the target of a link. The
// folder cannot be opened for it, since its mode may not allow that. Before Linux 6.6 only
// /proc has a way to do it.
func Chmod(in int, name string, mode uint32) error {
	err := unix.Fchmodat(in, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err != unix.EOPNOTSUPP {
		return err
	}
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}
