// Package embedded opens the files that the SDKs bring inside a program.
package embedded

import "io/fs"

// Folder is a folder of embedded files. It is there, or the program was not built.
func Folder(files fs.FS, name string) fs.FS {
	folder, err := fs.Sub(files, name)
	if err != nil {
		panic(err)
	}
	return folder
}
