package supervise

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// The mark of processes below a step is a hard limit of file locks (RLIMIT_LOCKS). Linux enforces
// no such limit since 2.4.25 and programs do not set it. But it keeps the value of each process:
// a child inherits it, whatever it does to its parents, session, environment and name, and
// only a process with the capability CAP_SYS_RESOURCE raises it again.
const (
	limitOfLocks = 10 // RLIMIT_LOCKS
	unlimited    = ^uint64(0)
	marked       = unlimited >> 1
)

// mark marks this process and so all that it will start.
func mark() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(limitOfLocks, &limit); err != nil || limit.Max != unlimited {
		return err
	}
	return syscall.Setrlimit(limitOfLocks, &syscall.Rlimit{Cur: marked, Max: marked})
}

// Marked reports whether a process is a supervisor or below one, also one whose supervisor
// and host have ended. Of a process that has ended it is false.
func Marked(pid int) bool {
	var limit syscall.Rlimit
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), limitOfLocks, 0, uintptr(unsafe.Pointer(&limit)), 0, 0)
	if errno == 0 {
		return limit.Max != unlimited
	}
	if errno != syscall.EPERM { // of a process of another user the file alone shows it
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return false
	}
	f := fields(text)
	for i := range len(f) - 4 { // Max file locks SOFT HARD
		if f[i] == "Max" && f[i+1] == "file" && f[i+2] == "locks" {
			return f[i+4] != "unlimited"
		}
	}
	return false
}
