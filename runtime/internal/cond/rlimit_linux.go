package cond

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// limitProcess bounds what this process may map as data from now on. It is
// RLIMIT_DATA because RLIMIT_AS counts the gigabyte of addresses that Go
// reserves at its start and never touches. The limit lies above what is mapped
// already, so it means the same in a small program and a large one.
func limitProcess(memory int64) error {
	closeInherited()
	base, err := dataSize()
	if err != nil {
		return err
	}
	limit := uint64(base + memory)
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	// No core file of what was killed, and no file at all.
	for _, r := range []int{syscall.RLIMIT_CORE, syscall.RLIMIT_FSIZE} {
		if err := syscall.Setrlimit(r, &syscall.Rlimit{}); err != nil {
			return err
		}
	}
	// Collecting harder near the limit lets honest scripts pass.
	debug.SetMemoryLimit(memory * 3 / 4)
	debug.SetMaxStack(int(memory / 2))
	return nil
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
