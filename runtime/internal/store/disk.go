package store

import (
	"errors"

	berrors "go.etcd.io/bbolt/errors"
)

// ErrNoRoom says that something was not begun because the disk is short.
var ErrNoRoom = errors.New("not enough room on the disk")

// Disk is the room on the file system of a folder, for the user of this
// process. Numbers that the system does not tell are -1.
type Disk struct {
	Free, Total           int64 // bytes
	FreeFiles, TotalFiles int64 // names that can still be made; some file systems have no such number
}

// IsFull reports whether err says that there is no room to write: the disk or
// a quota is full, or the file may not grow.
func IsFull(err error) bool {
	for _, full := range fullErrors {
		if errors.Is(err, full) {
			return true
		}
	}
	return errors.Is(err, ErrNoRoom) || errors.Is(err, berrors.ErrMaxSizeReached)
}
