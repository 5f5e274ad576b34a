//go:build unix

package runtime_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time of this process. Figures of it say more
// than the clock on a machine that does other things as well.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
