//go:build !linux

package codeindex

import (
	"io/fs"
	"os"
)

// lstat returns the kind and the stamp of a file, without following a link.
func lstat(path string) (stat, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stat{}, err
	}
	return statOf(info), nil
}

// statOf returns the same of a file that a walk has visited. A file that another one
// of the same size and time replaces is not recognized here.
func statOf(info fs.FileInfo) stat {
	mtime := info.ModTime().UnixNano()
	return stat{
		regular: info.Mode().IsRegular(), folder: info.IsDir(), changed: mtime,
		stamp: stampOf(uint64(info.Size()), uint64(mtime)),
	}
}
