package checkpoint

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

// openPath opens the folder at an absolute path without links: one that has taken the place of a folder
// since the links were resolved is an error. The folders above need not be readable.
func openPath(name string) (int, error) {
	fd, err := retried(func() (int, error) { return unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	for part := range strings.SplitSeq(strings.Trim(name, "/")+"/.", "/") {
		if part == "" || err != nil {
			continue
		}
		flags := unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		if part == "." { // behind the last one
			flags = openFlags
		}
		above := fd
		fd, err = retried(func() (int, error) { return unix.Openat(above, part, flags, 0) })
		_ = unix.Close(above) // nothing was written through it
	}
	return fd, err
}

// mounted reports whether what has a name in the folder is the top of what was mounted there: another file system, or
// another file or folder by a bind mount. No name is the folder itself. Linux before 5.8 does not say so.
func (f *openedFolder) mounted(name string) bool {
	var s unix.Statx_t
	err := trash.Again(func() error {
		return unix.Statx(f.fd, name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, 0, &s)
	})
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// exchange gives each of two names in the folder the file of the other, in one step.
func (f *openedFolder) exchange(one, other string) error {
	err := f.renameBy(one, other, unix.RENAME_EXCHANGE)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return f.exchangeByNames(one, other)
}

// renameNew renames a file within the folder to a name that nothing has.
func (f *openedFolder) renameNew(from, to string) error {
	return f.renameBy(from, to, unix.RENAME_NOREPLACE)
}

func (f *openedFolder) renameBy(from, to string, flags uint) error {
	err := trash.Again(func() error { return unix.Renameat2(f.fd, from, f.fd, to, flags) })
	for _, unsupported := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP} { // such as of NFS
		if errors.Is(err, unsupported) {
			return errors.ErrUnsupported
		}
	}
	return err
}
