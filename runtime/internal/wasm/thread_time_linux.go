package wasm

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the processor time of the calling thread. ok is false if the
// system does not report it.
func threadTime() (used time.Duration, ok bool) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
