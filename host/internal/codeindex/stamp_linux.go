package codeindex

import "syscall"

// lstat returns the kind and the stamp of a file, without following a link.
func lstat(path string) (info stat, err error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return stat{}, err
	}
	kind := st.Mode & syscall.S_IFMT
	mtime, ctime := st.Mtim.Nano(), st.Ctim.Nano()
	return stat{
		regular: kind == syscall.S_IFREG, folder: kind == syscall.S_IFDIR, size: st.Size, changed: max(mtime, ctime),
		stamp: stampOf(uint64(st.Size), uint64(mtime), uint64(ctime), st.Ino),
	}, nil
}
