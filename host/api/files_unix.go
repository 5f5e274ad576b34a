//go:build unix

package api

import "syscall"

// fileLimit is how many files the process may have open. The Go runtime has
// raised the soft limit to the hard one by now.
func fileLimit() (n uint64, known bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true //nolint:unconvert // the type differs between systems
}
