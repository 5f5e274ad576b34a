//go:build unix && !linux

package trash

import "golang.org/x/sys/unix"

// Chmod changes the mode of a file or folder in a folder, and never that of the target of a link.
func Chmod(in int, name string, mode uint32) error {
	return unix.Fchmodat(in, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}
