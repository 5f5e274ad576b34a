package codeindex

import (
	"io/fs"
	"syscall"
)

// statOf returns the kind and the stamp of a file.
func statOf(info fs.FileInfo) stat {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{}
	}
	kind := st.Mode & syscall.S_IFMT
	mtime, ctime := st.Mtim.Nano(), st.Ctim.Nano()
	return stat{
		regular: kind == syscall.S_IFREG, folder: kind == syscall.S_IFDIR, changed: max(mtime, ctime),
		stamp: stampOf(uint64(st.Size), uint64(mtime), uint64(ctime), st.Ino),
	}
}
