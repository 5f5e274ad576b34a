//go:build !linux

package files

import "io/fs"

// changeTime returns zeros: change time and inode are used on Linux only.
func changeTime(fs.FileInfo) (changed int64, inode uint64) { return 0, 0 }
