package trash

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Chmod changes the mode of a file or folder in a folder, and never that of the target of a link. It
// cannot be opened for it, since its mode may not allow that. Before Linux 6.6 only
// /proc has a way to do it.
func Chmod(in int, name string, mode uint32) error {
	err := unix.Fchmodat(in, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err != unix.EOPNOTSUPP {
		return err
	}
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.EOPNOTSUPP // as since Linux 6.6; the file system may change the mode of the link
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}
