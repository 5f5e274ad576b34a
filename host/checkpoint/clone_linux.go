package checkpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// cloneFile gives a new file the content of another, without reading it. The error is
// [errors.ErrUnsupported] if the file systems cannot.
func cloneFile(to, from *os.File) error {
	conn, err := from.SyscallConn()
	if err != nil {
		return err
	}
	inner, err := to.SyscallConn()
	if err != nil {
		return err
	}
	var cloned, closed error
	err = conn.Control(func(source uintptr) {
		closed = inner.Control(func(target uintptr) { cloned = unix.IoctlFileClone(int(target), int(source)) })
	})
	for _, unsupported := range []error{unix.EOPNOTSUPP, unix.ENOTTY, unix.EXDEV, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(cloned, unsupported) {
			return errors.ErrUnsupported
		}
	}
	return errors.Join(err, closed, cloned)
}
