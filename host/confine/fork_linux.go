package confine

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastSignal is the highest signal of Linux on the processors that Go supports.
const lastSignal = 64

// A sigaction is that of the kernel, which begins with the handler. It is as long as the longest one.
type sigaction [5]uint64

// ignoreSignals ignores the signals that the launcher does not need: it handles the end of
// children, the order to terminate, and that by which the Go runtime interrupts goroutines. The
// runtime has handlers for all others, and ends the process for faults that a signal pretends.
func ignoreSignals() error {
	ignored := sigaction{1} // SIG_IGN. The default action may end the process while one of its threads blocks signals
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGURG:
			continue
		}
		if _, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&ignored)), 0, unsafe.Sizeof(uint64(0)), 0, 0); errno != 0 {
			return fmt.Errorf("ignore signal %d: %w", s, errno)
		}
	}
	return nil
}

// A child is what forkExec needs.
type child struct {
	path       *byte
	argv, envv **byte
	processes  syscall.Rlimit
	mask       uint64 // signals that were blocked before
	report     int    // where the error of a child goes, which closes when it executes the command
}

// fork executes the command in a child process, in a session of its own: the kernel divides the
// processors by session, and this process needs its part to look at limits. Package syscall cannot
// give a child a limit of processes, and this process must not have it: without another thread
// the Go runtime ends the program.
func (p *plan) fork() (pid int, err error) {
	c := &child{}
	if c.path, err = unix.BytePtrFromString(p.Path); err != nil {
		return 0, err
	}
	argv, err := syscall.SlicePtrFromStrings(p.Args)
	if err != nil {
		return 0, err
	}
	envv, err := syscall.SlicePtrFromStrings(p.Env)
	if err != nil {
		return 0, err
	}
	c.argv, c.envv = &argv[0], &envv[0]
	if c.processes, err = lowered(unix.RLIMIT_NPROC, p.Limits.Processes); err != nil {
		return 0, err
	}
	var report [2]int
	if err := unix.Pipe2(report[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer unix.Close(report[0])
	c.report = report[1]
	child, errno := forkExec(c)
	runtime.KeepAlive(argv)
	runtime.KeepAlive(envv)
	_ = unix.Close(report[1]) // else the end of the file does not come
	if errno != 0 {
		return 0, errno
	}
	var failed [4]byte
	for {
		n, err := unix.Read(report[0], failed[:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == len(failed):
			return 0, syscall.Errno(binary.NativeEndian.Uint32(failed[:]))
		default:
			return int(child), nil
		}
	}
}

// forkExec forks this process. The child is a copy without the threads of the Go runtime, so it
// makes system calls only, and takes no signal until it executes the command.
//
//go:nosplit
//go:noinline
//go:norace
func forkExec(c *child) (pid uintptr, errno syscall.Errno) {
	const size = unsafe.Sizeof(c.mask)
	all := ^uint64(0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&c.mask)), size, 0, 0)
	flags, stack := uintptr(unix.SIGCHLD), uintptr(0)
	if runtime.GOARCH == "s390x" { // which has them in the other order
		flags, stack = stack, flags
	}
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, flags, stack, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, size, 0, 0)
		return pid, errno
	}
	var action sigaction
	for s := uintptr(1); s <= lastSignal; s++ { // of SIGKILL and SIGSTOP it cannot be changed
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&action)), 0, size, 0, 0)
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0, size, 0, 0)
	_, _, errno = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, uintptr(unsafe.Pointer(&c.processes)), 0, 0, 0)
	}
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.path)), uintptr(unsafe.Pointer(c.argv)), uintptr(unsafe.Pointer(c.envv)))
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.report), uintptr(unsafe.Pointer(&errno)), 4)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT, 1, 0, 0)
	}
}
