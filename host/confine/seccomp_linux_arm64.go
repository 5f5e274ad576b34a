package confine

import "golang.org/x/sys/unix"

const (
	auditArch  = unix.AUDIT_ARCH_AARCH64
	newestCall = unix.SYS_RSEQ_SLICE_YIELD // newer calls are reported as not implemented
)

var (
	refusedHere    []uint32
	conditionsHere []condition
	fileCallsHere  []int
	pollsHere      map[int]int
)
