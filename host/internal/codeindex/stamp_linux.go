package codeindex

import (
	"io/fs"
	"syscall"
)

// lstat returns the kind and the stamp of a file, without following a link.
func lstat(path string) (stat, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	return statFrom(&st), err
}

// statOf returns the same of a file that a walk has visited.
func statOf(info fs.FileInfo) stat {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{}
	}
	return statFrom(st)
}

func statFrom(st *syscall.Stat_t) stat {
	kind := st.Mode & syscall.S_IFMT
	mtime, ctime := st.Mtim.Nano(), st.Ctim.Nano()
	return stat{
		regular: kind == syscall.S_IFREG, folder: kind == syscall.S_IFDIR, changed: max(mtime, ctime),
		stamp: stampOf(uint64(st.Size), uint64(mtime), uint64(ctime), st.Ino),
	}
}
