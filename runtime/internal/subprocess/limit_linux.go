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

// Apply bounds what this process may use from now on. Memory is RLIMIT_DATA
// because RLIMIT_AS counts the gigabyte of addresses that Go reserves at its
// start and never touches. The limit lies above what is mapped already, so it
// means the same in a small program and a large one.
func (l Limits) Apply() error {
	closeInherited()
	base, err := dataSize()
	if err != nil {
		return err
	}
	limits := map[int]uint64{
		syscall.RLIMIT_DATA:  uint64(base + l.Memory),
		syscall.RLIMIT_CORE:  0, // no core file of what was killed
		syscall.RLIMIT_FSIZE: uint64(l.File),
	}
	if l.CPU > 0 {
		// At the hard limit the system kills; Go takes no notice of the soft one.
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
	// Collecting harder near the limit lets honest work pass.
	debug.SetMemoryLimit(l.Memory * 3 / 4)
	debug.SetMaxStack(int(l.Memory / 2))
	return nil
}

// toBackground makes this process the last to be served and the first to be
// ended. Neither may fail loudly: without them it works as well, only less
// politely.
func toBackground() {
	const nice = 10
	// The group, since on Linux the process alone would be one of its threads.
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, nice)
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0)
}

// dataSize is what counts for RLIMIT_DATA so far, in bytes.
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

// closeInherited closes the files that came through exec by accident, because
// whoever started the parent let them. Those that Go opened itself have the
// close-on-exec flag, which nothing that was inherited can have.
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
