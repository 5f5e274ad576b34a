package checkpoint

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

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
