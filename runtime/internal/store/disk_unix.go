//go:build linux || darwin || freebsd

package store

import "golang.org/x/sys/unix"

var fullErrors = []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG}

// DiskOf returns the capacity and the free space of the file system of a
// folder.
func DiskOf(dir string) (Disk, error) {
	var s unix.Statfs_t
	for {
		err := unix.Statfs(dir, &s)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return Disk{Free: -1, Total: -1, FreeFiles: -1, TotalFiles: -1}, err
		}
	}
	block := int64(s.Bsize) //nolint:unconvert // the type differs between systems
	d := Disk{Free: int64(s.Bavail) * block, Total: int64(s.Blocks) * block, FreeFiles: int64(s.Ffree), TotalFiles: int64(s.Files)}
	if d.TotalFiles == 0 {
		d.FreeFiles, d.TotalFiles = -1, -1
	}
	return d, nil
}
