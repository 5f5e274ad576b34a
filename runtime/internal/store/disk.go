package store

import (
	"errors"
	"io/fs"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// ErrNoSpace means that an operation was not started because there is too
// little free space on the disk.
var ErrNoSpace = errors.New("not enough free space on the disk")

// Disk is the capacity and the free space of a file system, for the user of
// this process. A number that the system does not report is -1.
type Disk struct {
	Free, Total           int64 // bytes
	FreeFiles, TotalFiles int64 // inodes; some file systems have no such limit
}

// IsFull reports whether err means that there is no free space: the disk or a
// quota is full, or the file has reached its maximum size.
func IsFull(err error) bool {
	for _, full := range fullErrors {
		if errors.Is(err, full) {
			return true
		}
	}
	return errors.Is(err, ErrNoSpace) || errors.Is(err, berrors.ErrMaxSizeReached)
}

// IsReadOnly reports whether err means that this process has no permission to
// write, or that the file system is read-only.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
