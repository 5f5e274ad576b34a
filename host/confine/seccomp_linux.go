//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// hasFilter reports whether this package has a filter of system calls for the processor.
const hasFilter = true

// Offsets in the data that the kernel gives a filter, see seccomp(2).
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // six values of eight bytes
)

// namespaceFlags are the flags of clone and unshare that create a namespace. The lowest
// byte of clone's flags is a signal; CLONE_NEWTIME, which lies there, is for unshare only.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// refusedCalls are the system calls that a confined process cannot make: those that change mounts
// and namespaces, read or control other processes, use keyrings that outlive the process, load
// code into the kernel, or have a history of privilege escalation. The launcher has the filter too, and
// finds out by kcmp which of the processes have one memory.
var refusedCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_FANOTIFY_INIT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}

// absentCalls are reported as not implemented, so that programs use another way: clone3 has
// its flags in memory, where a filter cannot see them, as openat2 has the mode of a file. Contexts of
// io_setup are counted for the whole machine. Pages in a pipe of vmsplice belong to no
// process, and those of memfd_secret are counted as a cache. Rules of Landlock take memory of the kernel
// for as many as there are ports, and nothing shows which process has them.
var absentCalls = []uint32{
	unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_SETUP, unix.SYS_VMSPLICE, unix.SYS_MEMFD_SECRET, unix.SYS_LANDLOCK_CREATE_RULESET,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD,
}

// setID are the bits of a mode with which a program has the rights of the owner or group of its
// file. Outside of the command's mounts they count, for every user who reaches the file.
const setID = unix.S_ISUID | unix.S_ISGID

// sharedCalls reach memory, semaphores and queues of the user's other programs where a command has
// no IPC namespace of its own.
var sharedCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// attributeCalls change extended attributes, such as access lists. They are refused where the command
// sees all files of the user: Landlock does not know these calls. The error is that of a file system
// without such attributes, which programs expect.
var attributeCalls = []uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT,
}

// An argument is a condition on an argument of a system call.
type argument struct {
	index int
	mask  uint32 // of the lower 32 bits
	equal uint32 // what the masked bits are, or
	any   bool   // one of the masked bits is set, or
	other bool   // the masked bits are another value than equal
}

// A condition refuses a system call by one of its arguments.
type condition struct {
	call uint32
	argument
}

var refusedArguments = []condition{
	{unix.SYS_CLONE, argument{index: 0, mask: namespaceFlags, any: true}},
	{unix.SYS_UNSHARE, argument{index: 0, mask: namespaceFlags | unix.CLONE_NEWTIME, any: true}},
	// Threads with files of their own, which the launcher would have to look for, and processes that share files, one of
	// which closes what another one uses.
	{unix.SYS_CLONE, argument{index: 0, mask: unix.CLONE_THREAD | unix.CLONE_FILES, equal: unix.CLONE_THREAD}},
	{unix.SYS_CLONE, argument{index: 0, mask: unix.CLONE_THREAD | unix.CLONE_FILES, equal: unix.CLONE_FILES}},
	{unix.SYS_UNSHARE, argument{index: 0, mask: unix.CLONE_FILES, any: true}},
	{unix.SYS_CLOSE_RANGE, argument{index: 2, mask: unix.CLOSE_RANGE_UNSHARE, any: true}},
	{unix.SYS_FCHMOD, argument{index: 1, mask: setID, any: true}},
	{unix.SYS_FCHMODAT, argument{index: 2, mask: setID, any: true}},
	{unix.SYS_FCHMODAT2, argument{index: 2, mask: setID, any: true}},
	{unix.SYS_OPENAT, argument{index: 3, mask: setID, any: true}},
	{unix.SYS_MKNODAT, argument{index: 2, mask: setID, any: true}},
	{unix.SYS_MKNODAT, argument{index: 2, mask: unix.S_IFMT, equal: unix.S_IFCHR}},
	{unix.SYS_MKNODAT, argument{index: 2, mask: unix.S_IFMT, equal: unix.S_IFBLK}},
	{unix.SYS_PRLIMIT64, argument{index: 0, mask: math.MaxUint32, other: true}},
	{unix.SYS_IOCTL, argument{index: 1, mask: math.MaxUint32, equal: unix.TIOCSTI}},
	{unix.SYS_IOCTL, argument{index: 1, mask: math.MaxUint32, equal: tiocLinux}},
	{unix.SYS_SOCKET, argument{index: 0, mask: math.MaxUint32, equal: unix.AF_VSOCK}},
	{unix.SYS_SOCKET, argument{index: 0, mask: math.MaxUint32, equal: unix.AF_ALG}},
	// A lease makes programs of the host wait for a file that both can read.
	{unix.SYS_FCNTL, argument{index: 1, mask: math.MaxUint32, equal: unix.F_SETLEASE}},
	{unix.SYS_FCNTL, argument{index: 1, mask: math.MaxUint32, equal: unix.F_NOTIFY}},
	// How another process is scheduled: of the host, or the launcher that watches limits.
	{unix.SYS_SETPRIORITY, argument{index: 0, mask: math.MaxUint32, equal: unix.PRIO_PROCESS, other: true}},
	{unix.SYS_SETPRIORITY, argument{index: 1, mask: math.MaxUint32, other: true}},
	{unix.SYS_IOPRIO_SET, argument{index: 0, mask: math.MaxUint32, equal: ioprioProcess, other: true}},
	{unix.SYS_IOPRIO_SET, argument{index: 1, mask: math.MaxUint32, other: true}},
	{unix.SYS_SCHED_SETAFFINITY, argument{index: 0, mask: math.MaxUint32, other: true}},
	{unix.SYS_SCHED_SETSCHEDULER, argument{index: 0, mask: math.MaxUint32, other: true}},
	{unix.SYS_SCHED_SETPARAM, argument{index: 0, mask: math.MaxUint32, other: true}},
	{unix.SYS_SCHED_SETATTR, argument{index: 0, mask: math.MaxUint32, other: true}},
}

// absentProtocols are reported as not supported, so that programs use TCP and UDP. Connections of MPTCP are in sockets
// of the kernel that no process has open, and the buffers of UDP-Lite in no list of TCP and UDP.
var absentProtocols = []condition{
	{unix.SYS_SOCKET, argument{index: 2, mask: math.MaxUint32, equal: unix.IPPROTO_MPTCP}},
	{unix.SYS_SOCKET, argument{index: 2, mask: math.MaxUint32, equal: unix.IPPROTO_UDPLITE}},
}

// absentOptions are reported as invalid, as by kernels that are older. With one call a process has a table of futexes of
// 1 GiB, which nothing shows.
var absentOptions = []condition{{unix.SYS_PRCTL, argument{index: 0, mask: math.MaxUint32, equal: prFutexHash}}}

const (
	prFutexHash   = 78     // PR_FUTEX_HASH, of Linux 6.16
	tiocLinux     = 0x541c // TIOCLINUX: pastes into a console
	ioprioProcess = 1      // IOPRIO_WHO_PROCESS
)

func errnoAction(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// filter returns the program that decides about each system call. alone says that the command is in
// namespaces of its own.
func filter(conditions []condition, alone bool) []bpf.Instruction {
	program := []bpf.Instruction{
		// Calls by the interface of another processor, such as 32-bit ones, have other numbers.
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		errnoAction(unix.ENOSYS),
		// This also covers the x32 interface, whose numbers have a high bit.
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: newestCall, SkipTrue: 1},
		errnoAction(unix.ENOSYS),
	}
	refuse := func(numbers []uint32, errno unix.Errno) {
		for _, nr := range numbers {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 1}, errnoAction(errno))
		}
	}
	refuse(refusedCalls, unix.EPERM)
	refuse(refusedHere, unix.EPERM)
	if !alone {
		refuse(sharedCalls, unix.EPERM)
		refuse(attributeCalls, unix.ENOTSUP)
	}
	refuse(absentCalls, unix.ENOSYS)
	refuseBy := func(c condition, errno unix.Errno) {
		low := bpf.LoadAbsolute{Off: offsetArgs + 8*uint32(c.index), Size: 4} // both processors store it first
		test := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.equal, SkipTrue: 1}
		switch {
		case c.any:
			test = bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}
		case c.other:
			test = bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.equal, SkipTrue: 1}
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.call, SkipTrue: 5}, low,
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask}, test, errnoAction(errno), bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	}
	for _, c := range conditions {
		refuseBy(c, unix.EPERM)
	}
	for _, c := range absentProtocols {
		refuseBy(c, unix.EPROTONOSUPPORT)
	}
	for _, c := range absentOptions {
		refuseBy(c, unix.EINVAL)
	}
	return append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// restrictCalls applies the filter to all threads of this process, which must not be able to
// gain privileges.
func restrictCalls(alone bool) error {
	raw, err := bpf.Assemble(filter(append(slices.Clone(refusedArguments), conditionsHere...), alone))
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return fmt.Errorf("seccomp filter: %w", errno)
	case thread != 0:
		return fmt.Errorf("seccomp filter: thread %d cannot be restricted", thread)
	}
	return nil
}
