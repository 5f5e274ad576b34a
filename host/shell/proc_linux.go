package shell

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// limits says in words what this system cannot do; empty here.
const limits = ""

// proc is one line of the process table.
type proc struct {
	pid, parent, session int
	state                byte
	start                uint64 // clock ticks since boot
	rss                  int64  // bytes
}

// gone reports a process that has ended and waits to be reaped.
func (p proc) gone() bool { return p.state == 'Z' || p.state == 'X' }

// bootID names the running system's start: pids mean nothing across it.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// processTable reads every process that can be seen. Those that end meanwhile
// are left out.
func processTable() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	list := make([]proc, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := processOf(pid); ok {
				list = append(list, p)
			}
		}
	}
	return list
}

// processOf reads one process.
func processOf(pid int) (proc, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	// The name in parentheses may hold anything; the fields follow the last one.
	i := bytes.LastIndexByte(data, ')')
	f := strings.Fields(string(data[i+1:]))
	if i < 0 || len(f) < 22 {
		return proc{}, false
	}
	p := proc{pid: pid, state: f[0][0]}
	p.parent, _ = strconv.Atoi(f[1])
	p.session, _ = strconv.Atoi(f[3])
	p.start, _ = strconv.ParseUint(f[19], 10, 64)
	pages, _ := strconv.ParseInt(f[21], 10, 64)
	p.rss = pages * int64(os.Getpagesize())
	return p, true
}

// startTime tells a process from a later one with the same pid.
func startTime(pid int) uint64 {
	p, _ := processOf(pid)
	return p.start
}

// hasCookie reports whether a process was started with the cookie, which may
// be one of several: an execution of a host that itself runs in an execution
// carries both.
func hasCookie(pid int, cookie string) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || cookie == "" {
		return false
	}
	for variable := range bytes.SplitSeq(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte("SENTINEL_COOKIE=")); ok {
			return slices.Contains(strings.Split(string(value), ":"), cookie)
		}
	}
	return false
}

// treeOf picks the processes of one execution: those of its session, those
// with its cookie, and their descendants. leader is the pid it was started
// with, 0 if that may belong to somebody else by now; since is its start time.
func treeOf(table []proc, leader int, since uint64, cookie string) []proc {
	self := os.Getpid()
	in := make(map[int]bool)
	for _, p := range table {
		switch {
		case p.pid == self || p.start < since:
		case leader != 0 && (p.session == leader || p.pid == leader):
			in[p.pid] = true
		case !p.gone() && hasCookie(p.pid, cookie):
			in[p.pid] = true
		}
	}
	for grew := true; grew; {
		grew = false
		for _, p := range table {
			if !in[p.pid] && in[p.parent] && p.pid != self {
				in[p.pid], grew = true, true
			}
		}
	}
	var tree []proc
	for _, p := range table {
		if in[p.pid] {
			tree = append(tree, p)
		}
	}
	return tree
}

// endTree kills what is left of an execution until nothing is, and reaps what
// fell to us. It returns how many processes it killed. The leader itself, a
// zombie that its waiter reaps, is left alone when spare is set.
func endTree(leader int, since uint64, cookie string, spare bool) (killed int) {
	seen := map[int]bool{}
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		alive := false
		for _, p := range treeOf(processTable(), leader, since, cookie) {
			if p.pid == leader && spare {
				continue
			}
			if p.gone() {
				reap(p.pid)
				continue
			}
			alive = true
			if !seen[p.pid] {
				seen[p.pid] = true
				killed++
			}
			// Looked at again just before: a pid is not reused within so short
			// a time unless the system is out of pids.
			if now, ok := processOf(p.pid); ok && now.start == p.start {
				_ = syscall.Kill(p.pid, syscall.SIGKILL) // gone already is what we want
			}
		}
		if !alive {
			break
		}
		time.Sleep(pause)
	}
	for pid := range seen {
		reap(pid)
	}
	return killed
}

// reap takes the exit of a process of an execution if it became our child, as
// orphans do where this program is process 1 or a subreaper.
func reap(pid int) {
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil) // not our child: somebody else's task
}

// memoryOf returns the resident bytes of the sessions and what descends from them.
func memoryOf(leaders []int) int64 {
	table := processTable()
	in := make(map[int]bool)
	for _, leader := range leaders {
		for _, p := range treeOf(table, leader, 0, "") {
			in[p.pid] = true
		}
	}
	var total int64
	for _, p := range table {
		if in[p.pid] {
			total += p.rss
		}
	}
	return total
}

// awaitExit blocks until the process has ended and leaves it a zombie, so that
// its pid, and with it its group, cannot be reused before the rest is killed.
func awaitExit(c *child) {
	const pPid, wExited, wNoWait = 1, 4, 0x01000000
	var info [128]byte // siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPid, uintptr(c.cmd.Process.Pid), uintptr(unsafe.Pointer(&info)), wExited|wNoWait, 0, 0)
		if errno != syscall.EINTR {
			return // ended, or not waitable: Wait says what happened
		}
	}
}

// becomeSubreaper has orphaned grandchildren fall to this process instead of
// process 1, so that the Manager reaps those it killed. It holds for the whole
// process: orphans of others fall to it too and stay zombies until it ends,
// which is why it is not the default.
func becomeSubreaper() error {
	const prSetChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	return nil
}
