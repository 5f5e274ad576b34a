package subprocess

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime reads the clock of a process: the system has one for each process id,
// see clock_getcpuclockid(3).
func cpuTime(pid int) (time.Duration, bool) {
	const scheduled = 2 // the clock counts the time on a processor, in nanoseconds
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
