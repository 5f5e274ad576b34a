package checkpoint

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// exchange gives each of two paths of a folder the file of the other, in one step.
func (a *applier) exchange(one, other string) error {
	err := a.renameat(one, other, unix.RENAME_EXCHANGE)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return a.exchangeByNames(one, other)
}

// renameNew renames a file within its folder to a name that nothing has.
func (a *applier) renameNew(from, to string) error {
	return a.renameat(from, to, unix.RENAME_NOREPLACE)
}

func (a *applier) renameat(from, to string, flags uint) error {
	dir, err := a.root.Open(path.Dir(from))
	if err != nil {
		return err
	}
	defer dir.Close()
	conn, err := dir.SyscallConn()
	if err != nil {
		return err
	}
	var renamed error
	err = conn.Control(func(fd uintptr) {
		renamed = unix.Renameat2(int(fd), path.Base(from), int(fd), path.Base(to), flags)
	})
	for _, unsupported := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP} { // such as of NFS
		if errors.Is(renamed, unsupported) {
			return errors.ErrUnsupported
		}
	}
	if renamed != nil {
		renamed = &os.LinkError{Op: "renameat2", Old: from, New: to, Err: renamed}
	}
	return errors.Join(err, renamed)
}
