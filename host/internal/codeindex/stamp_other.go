//go:build !linux

package codeindex

import "os"

// lstat returns the kind and the stamp of a file, without following a link. A file
// that another one of the same size and time replaces is not recognized here.
func lstat(path string) (stat, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stat{}, err
	}
	mtime := info.ModTime().UnixNano()
	return stat{
		regular: info.Mode().IsRegular(), folder: info.IsDir(), size: info.Size(), changed: mtime,
		stamp: stampOf(uint64(info.Size()), uint64(mtime)),
	}, nil
}
