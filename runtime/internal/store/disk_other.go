//go:build !linux && !darwin && !freebsd

package store

import (
	"errors"
	"syscall"
)

var fullErrors = []error{syscall.ENOSPC}

// DiskOf is not supported on this system. A full disk is noticed when commits
// fail.
func DiskOf(string) (Disk, error) {
	return Disk{Free: -1, Total: -1, FreeFiles: -1, TotalFiles: -1}, errors.ErrUnsupported
}
