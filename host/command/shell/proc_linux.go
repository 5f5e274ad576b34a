package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command/shell/supervise"
)

// limits describes what this system cannot do; empty here.
const limits = ""

// proc is one line of the process table.
type proc = supervise.Process

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
			if p, ok := supervise.ProcessOf(pid); ok {
				list = append(list, p)
			}
		}
	}
	return list
}

// startTime distinguishes a process from a later one with the same pid.
func startTime(pid int) uint64 {
	p, _ := supervise.ProcessOf(pid)
	return p.Start
}

// hasCookie reports whether a process was started with the cookie, which may be one
// of several: an execution of a host that itself runs in an execution carries both.
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

// treeOf picks what can be found of the processes of an execution without its
// supervisor: those of its session, those with its cookie, and their descendants.
// leader is the pid of the command, 0 if that may be another process by now; since is
// its start time.
func treeOf(table []proc, leader int, since uint64, cookie string) []proc {
	self := os.Getpid()
	in := make(map[int]bool)
	for _, p := range table {
		switch {
		case p.PID == self || p.Start < since:
		case leader != 0 && (p.Session == leader || p.PID == leader):
			in[p.PID] = true
		case !p.Gone() && hasCookie(p.PID, cookie):
			in[p.PID] = true
		}
	}
	return withDescendants(table, in)
}

// below picks the descendants of a process.
func below(table []proc, root int) []proc {
	tree := withDescendants(table, map[int]bool{root: true})
	return slices.DeleteFunc(tree, func(p proc) bool { return p.PID == root })
}

// withDescendants picks processes and all that are below them, but not this one.
func withDescendants(table []proc, in map[int]bool) []proc {
	self := os.Getpid()
	for grew := true; grew; {
		grew = false
		for _, p := range table {
			if !in[p.PID] && in[p.Parent] && p.PID != self {
				in[p.PID], grew = true, true
			}
		}
	}
	var tree []proc
	for _, p := range table {
		if in[p.PID] {
			tree = append(tree, p)
		}
	}
	return tree
}

// endTree kills what pick finds until it finds nothing alive twice in a row, for a
// second at most, and reaps what has become a child of this process. It returns how
// many processes it killed. Once is not enough: the environment of a process that is
// just starting a program cannot be read.
func endTree(pick func(table []proc) []proc) (killed int) {
	seen := map[int]bool{}
	quiet := 0
	for pause := time.Millisecond; pause < time.Second; pause *= 2 {
		alive := false
		for _, p := range pick(processTable()) {
			if p.Gone() {
				reap(p.PID)
				continue
			}
			alive = true
			if !seen[p.PID] {
				seen[p.PID] = true
				killed++
			}
			// Looked at again just before: a pid is not reused within so short
			// a time unless the system is out of pids.
			if now, ok := supervise.ProcessOf(p.PID); ok && now.Start == p.Start {
				_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended
			}
		}
		if quiet++; alive {
			quiet = 0
		}
		if quiet == 2 {
			break
		}
		time.Sleep(pause)
	}
	for pid := range seen {
		reap(pid)
	}
	return killed
}

// endLeftover ends what an earlier host left of an execution. Its supervisor does so
// when the host has ended, and is given the time for that: the file is there until
// then. sure says that the supervisor was done; if not, it was killed, and what left
// the session and the environment of the execution cannot be found.
//
// The session counts only if its leader is still the very process of the record,
// since its pid may be another's by now; the cookie always does.
func endLeftover(r Record, file string) (killed int, sure bool) {
	deadline := time.Now().Add(superviseTime)
	for {
		var pid int
		var start uint64
		text, err := os.ReadFile(file)
		if sure = errors.Is(err, fs.ErrNotExist); sure {
			break
		}
		_, err = fmt.Sscan(string(text), &pid, &start)
		if s, ok := supervise.ProcessOf(pid); err != nil || !ok || s.Gone() || s.Start != start {
			break
		}
		if time.Now().After(deadline) {
			killed += endTree(func(table []proc) []proc { return below(table, pid) })
			_ = syscall.Kill(pid, syscall.SIGKILL) // the very process: it has run all the time
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	leader := 0
	if r.PID != 0 && r.StartTime != 0 && startTime(r.PID) == r.StartTime {
		leader = r.PID
	}
	killed += endTree(func(table []proc) []proc { return treeOf(table, leader, r.StartTime, r.Cookie) })
	return killed, sure
}

// reap takes the exit of a process of an execution if it became our child, as
// orphans do where this program is process 1 or a subreaper.
func reap(pid int) {
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil) // not a child of this process
}

// memoryOf returns the resident bytes of all processes below each of the roots.
func memoryOf(roots []int) []int64 {
	table := processTable()
	trees := make([]int64, len(roots))
	for i, root := range roots {
		for _, p := range below(table, root) {
			trees[i] += p.Pages * int64(os.Getpagesize())
		}
	}
	return trees
}

func becomeSubreaper() error { return supervise.BecomeSubreaper() }
