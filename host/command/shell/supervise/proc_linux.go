package supervise

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// Process is one line of the process table, see proc_pid_stat(5).
type Process struct {
	PID, Parent, Session int
	State                byte
	Start                uint64 // clock ticks since boot
	Pages                int64  // resident
}

// Gone reports a process that has ended and waits to be reaped.
func (p Process) Gone() bool { return p.State == 'Z' || p.State == 'X' }

// ProcessOf reads one process; false if there is none with that pid.
func ProcessOf(pid int) (p Process, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	// The name in parentheses may hold anything; the fields follow the last one.
	end := len(text) - 1
	for end >= 0 && text[end] != ')' {
		end--
	}
	f := fields(text[end+1:])
	if end < 0 || len(f) < 22 {
		return p, false
	}
	// The kernel wrote numbers.
	p = Process{PID: pid, State: f[0][0]}
	p.Parent, _ = strconv.Atoi(f[1])
	p.Session, _ = strconv.Atoi(f[3])
	p.Start, _ = strconv.ParseUint(f[19], 10, 64)
	p.Pages, _ = strconv.ParseInt(f[21], 10, 64)
	return p, true
}

// fields splits text at spaces and line ends. Package strings would do it, and be
// initialised first.
func fields(text []byte) []string {
	var list []string
	for at := 0; at < len(text); at++ {
		from := at
		for at < len(text) && text[at] != ' ' && text[at] != '\n' {
			at++
		}
		if at > from {
			list = append(list, string(text[from:at]))
		}
	}
	return list
}

// BecomeSubreaper makes orphans of this process's descendants its children instead
// of those of process 1. It holds for the whole process.
func BecomeSubreaper() error {
	const prSetChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	return nil
}

// closeOnExec keeps all files of this process but the standard ones from programs that it
// starts. Kernels before 5.11 do not have the call: there the connection alone is kept.
func closeOnExec() {
	const sysCloseRange, closeRangeCloexec = 436, 1 << 2
	_, _, _ = syscall.RawSyscall(sysCloseRange, 3, ^uintptr(0), closeRangeCloexec)
	syscall.CloseOnExec(ConnFD)
}

// children is the kernel's list of the children of this process, which the main thread has
// started or adopted; nil if the kernel has none. It is open from the start: a command may
// take the right to open files from its supervisor.
var children *os.File

func openChildren() *os.File {
	self := strconv.Itoa(os.Getpid())
	f, err := os.Open("/proc/" + self + "/task/" + self + "/children")
	if err != nil {
		return nil
	}
	return f
}

// ownChildren returns the pids of the children of this process.
func ownChildren() []int {
	if children == nil {
		return childrenOf(os.Getpid())
	}
	var text []byte
	for buffer := make([]byte, 64<<10); ; {
		n, err := children.ReadAt(buffer, int64(len(text)))
		text = append(text, buffer[:n]...)
		if err != nil || n == 0 { // the end
			return numbers(text)
		}
	}
}

// inheritance is what commands inherit from a supervisor, and can change in it: a process may
// do that to each other one of its user.
type inheritance struct {
	limits   [rlimits]syscall.Rlimit
	nice     int
	disk     uintptr // priority
	affinity [128]byte
}

const rlimits = 16 // kinds of resource limits

// inherited returns what commands of this supervisor inherit now. What cannot be read is zero.
func inherited() (h inheritance) {
	const ioprioProcess = 1
	for i := range h.limits {
		_ = syscall.Getrlimit(i, &h.limits[i])
	}
	h.nice, _ = syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	h.disk, _, _ = syscall.RawSyscall(syscall.SYS_IOPRIO_GET, ioprioProcess, 0, 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, uintptr(len(h.affinity)), uintptr(unsafe.Pointer(&h.affinity)))
	return h
}

// numbers reads numbers that end with a space each.
func numbers(text []byte) (list []int) {
	number := 0
	for _, c := range text {
		if c != ' ' {
			number = number*10 + int(c-'0')
			continue
		}
		list = append(list, number)
		number = 0
	}
	return list
}

// childrenOf returns the pids of a process's children. Some may be missing that are
// started or adopted meanwhile.
func childrenOf(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	var list []int
	for _, thread := range namesIn(dir) {
		text, err := os.ReadFile(dir + "/" + thread + "/children")
		if os.IsNotExist(err) {
			if _, err := os.Stat(dir + "/" + thread); err != nil {
				continue // the thread has ended
			}
			return scanChildren(pid) // a kernel without CONFIG_PROC_CHILDREN
		}
		list = append(list, numbers(text)...)
	}
	return list
}

// scanChildren is childrenOf by the whole process table.
func scanChildren(pid int) []int {
	var list []int
	for _, name := range namesIn("/proc") {
		if child, err := strconv.Atoi(name); err == nil {
			if p, ok := ProcessOf(child); ok && p.Parent == pid {
				list = append(list, child)
			}
		}
	}
	return list
}

// namesIn lists a folder, in no order.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what was read counts
	return names
}
