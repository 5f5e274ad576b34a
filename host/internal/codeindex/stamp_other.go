//go:build !linux

package codeindex

import "io/fs"

// statOf returns the kind and the stamp of a file. A file that another one of the same size and time replaces is not
// recognized here.
func statOf(info fs.FileInfo) stat {
	mtime := info.ModTime().UnixNano()
	return stat{
		regular: info.Mode().IsRegular(), folder: info.IsDir(), changed: mtime,
		stamp: stampOf(uint64(info.Size()), uint64(mtime)),
	}
}
