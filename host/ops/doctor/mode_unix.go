//go:build unix

package doctor

import (
	"os"
	"syscall"
)

// modesCount says that the modes of files keep others out.
const modesCount = true

func ownerOf(info os.FileInfo) (uid int, known bool) {
	s, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(s.Uid), true
}

func fileLimit() (n uint64, known bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true //nolint:unconvert // the type differs between systems
}
