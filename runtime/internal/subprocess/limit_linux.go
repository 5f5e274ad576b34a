package subprocess

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Apply limits this process from now on. Memory is limited by RLIMIT_DATA,
// because RLIMIT_AS would count the gigabyte of address space that Go reserves
// at its start and never touches. The limit is added to what is mapped already,
// so it means the same in a small program and in a large one.
func (l Limits) Apply() error {
	closeInherited()
	base, err := dataSize()
	if err != nil {
		return err
	}
	limits := map[int]uint64{
		syscall.RLIMIT_DATA:  uint64(base + l.Memory),
		syscall.RLIMIT_CORE:  0, // no core file of a killed helper
		syscall.RLIMIT_FSIZE: uint64(l.File),
	}
	if l.CPU > 0 {
		// The system kills at the hard limit. Go ignores the soft one.
		limits[syscall.RLIMIT_CPU] = uint64((l.CPU + time.Second - 1) / time.Second)
	}
	for resource, most := range limits {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	if l.Background {
		toBackground()
	}
	// A more aggressive collector near the limit lets valid work finish.
	debug.SetMemoryLimit(l.Memory * 3 / 4)
	debug.SetMaxStack(int(l.Memory / 2))
	return nil
}

// toBackground lowers the priority of this process and makes it the first that
// the system kills when memory runs out. Errors are ignored: the helper works
// without either.
func toBackground() {
	const nice = 10
	// Set it for the group: on Linux PRIO_PROCESS changes one thread only.
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, nice)
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0)
}

// dataSize returns how much counts against RLIMIT_DATA now, in bytes.
func dataSize() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmData:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("read /proc/self/status: no VmData")
}

// closeInherited closes files that reached this process through exec by
// accident, because the parent had inherited them without the close-on-exec
// flag. Files that Go opened itself have that flag, and an inherited file never
// has it.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			_ = syscall.Close(fd)
		}
	}
}
