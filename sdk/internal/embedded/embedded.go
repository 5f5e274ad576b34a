// Package embedded opens the embedded files of the SDKs.
package embedded

import "io/fs"

// Folder returns a folder of embedded files. It always exists, or the build fails.
func Folder(files fs.FS, name string) fs.FS {
	folder, err := fs.Sub(files, name)
	if err != nil {
		panic(err)
	}
	return folder
}
