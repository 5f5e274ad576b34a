//go:build !unix

package rootfs

import "io/fs"

// links cannot be had cheaply here, so hard links are not refused on this
// system; replacing by rename never writes through one anyway.
func links(fs.FileInfo) uint64 { return 1 }

// ignoreUnsupported drops the error of syncing a folder, which this system
// does not know.
func ignoreUnsupported(error) error { return nil }
