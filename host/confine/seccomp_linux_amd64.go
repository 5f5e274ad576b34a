package confine

import "golang.org/x/sys/unix"

const (
	auditArch  = unix.AUDIT_ARCH_X86_64
	newestCall = unix.SYS_RSEQ_SLICE_YIELD // newer calls are reported as not implemented
)

// refusedHere are calls that not all processors have.
var refusedHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}

// Calls that not all processors have: of one file, and of files that are named in memory, see hidesFiles.
var (
	fileCallsHere = []int{unix.SYS_EPOLL_WAIT}
	pollsHere     = map[int]int{unix.SYS_POLL: 1, unix.SYS_SELECT: 0}
)

var conditionsHere = []condition{
	{unix.SYS_CHMOD, argument{index: 1, mask: setID, any: true}},
	{unix.SYS_OPEN, argument{index: 2, mask: setID, any: true}},
	{unix.SYS_CREAT, argument{index: 1, mask: setID, any: true}},
	{unix.SYS_MKNOD, argument{index: 1, mask: setID, any: true}},
	{unix.SYS_MKNOD, argument{index: 1, mask: unix.S_IFMT, equal: unix.S_IFCHR}},
	{unix.SYS_MKNOD, argument{index: 1, mask: unix.S_IFMT, equal: unix.S_IFBLK}},
}
