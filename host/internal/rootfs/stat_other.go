//go:build !unix

package rootfs

import (
	"io/fs"
	"os"
)

// links returns 1: the number of hard links is not cheap to read here, so files
// with several are not refused. A replacement by rename does not write through
// a hard link in any case.
func links(fs.FileInfo) uint64 { return 1 }

// ignoreUnsupported drops the error of syncing a folder, which this system does
// not support.
func ignoreUnsupported(error) error { return nil }

// keepOwner does nothing: owners are inherited on this system.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
