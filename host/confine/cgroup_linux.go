package confine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcherShare is the memory of the launcher, in bytes, which is in the cgroup of its command.
const launcherShare = 32 << 20

// A hierarchy is what a version of cgroups has for a command: all in one place, or one for each controller.
type hierarchy struct {
	controller string // "" for version 2
	settings   []setting
	events     string // file with the number of processes that the kernel has ended for memory; "" for none
	enter      string // file by which one enters
}

// A setting is a file of a cgroup and what is written there, in the order that the kernel asks for.
type setting struct {
	file, value string
	needed      bool
}

// hierarchies returns those of both versions.
func hierarchies(l Limits) [][]hierarchy {
	memory, processes := strconv.FormatUint(l.Memory+launcherShare, 10), strconv.FormatUint(l.Processes+launcherIDs, 10)
	// Without its limit of swap a command could have its memory written there. Where there is none, the kernel may
	// have no such limit.
	swap := swaps("/proc/swaps")
	return [][]hierarchy{
		{{"", []setting{
			{"memory.max", memory, true}, {"memory.swap.max", "0", swap}, {"memory.oom.group", "1", false}, {"pids.max", processes, true},
		}, "memory.events", "cgroup.procs"}},
		{
			{"memory", []setting{{"memory.limit_in_bytes", memory, true}, {"memory.memsw.limit_in_bytes", memory, swap}}, "memory.oom_control", "tasks"},
			{"pids", []setting{{"pids.max", processes, true}}, "", "tasks"},
		},
	}
}

// swaps reports whether this machine has swap, by the list of it.
func swaps(list string) bool {
	text, err := os.ReadFile(list)
	return err == nil && strings.Count(string(text), "\n") > 1 // the first line has titles
}

// madeCgroups counts those that this process has made.
var madeCgroups atomic.Uint64

// leftCgroups are those that could not be removed yet: a process that the kernel has not ended is in them.
var leftCgroups struct {
	sync.Mutex
	list []*cgroup
}

// newCgroup makes a cgroup for a command, by a folder /proc. The error says why none can be made here.
func newCgroup(proc string, l Limits) (*cgroup, error) {
	leftCgroups.Lock()
	leftCgroups.list = slices.DeleteFunc(leftCgroups.list, (*cgroup).removed)
	leftCgroups.Unlock()
	var errs []error
	for _, version := range hierarchies(l) {
		c := &cgroup{Memory: l.Memory}
		name := fmt.Sprintf("%s%d-%d", cgroupPrefix, os.Getpid(), madeCgroups.Add(1))
		err := c.make(proc, name, version)
		if err == nil {
			return c, nil
		}
		c.removed() // what was made of it
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// make makes the folders of a cgroup in all hierarchies of a version.
func (c *cgroup) make(proc, name string, version []hierarchy) error {
	for _, h := range version {
		parents := h.parents(proc)
		err := errors.New("cgroups of version 2: this process has none above its own")
		if h.controller != "" {
			err = fmt.Errorf("cgroups of version 1: there is no controller %s", h.controller)
		}
		for i, parent := range parents {
			dir := filepath.Join(parent, name)
			failed := c.makeIn(parent, dir, h)
			if failed == nil {
				c.Enter = h.enter
				if h.events != "" {
					c.Events = filepath.Join(dir, h.events)
				}
				removeLeft(parent)
				err = nil
				break
			}
			if i == 0 { // the nearest one is what an operator can give
				err = failed
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeIn makes the folder of a hierarchy with its settings.
func (c *cgroup) makeIn(parent, dir string, h hierarchy) error {
	if h.controller == "" {
		if err := distributes(parent); err != nil {
			return err
		}
	}
	if slices.Contains(c.Folders, dir) { // this hierarchy has both controllers
	} else if err := unix.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make one in %s: %w", parent, err) // the name is another one each time
	}
	for _, s := range h.settings {
		file := filepath.Join(dir, s.file)
		if _, err := os.Lstat(file); err != nil && !s.needed {
			continue
		}
		if err := os.WriteFile(file, []byte(s.value), 0o644); err != nil {
			_ = os.Remove(dir) // it is empty
			return err
		}
	}
	c.Folders = append(c.Folders, dir)
	return nil
}

// parents returns the cgroups in which one for a command may be made, from near to far. In version 2 a cgroup with
// processes gives its own ones no controllers, so they are those above that of this process. In version 1 it is that.
func (h hierarchy) parents(proc string) (list []string) {
	mount, dir := ownCgroup(proc, h.controller)
	if h.controller != "" && dir != "" {
		return []string{dir}
	}
	for dir != mount {
		dir = filepath.Dir(dir)
		list = append(list, dir)
	}
	return list
}

// distributes makes sure that a cgroup of version 2 gives those in it both controllers.
func distributes(dir string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if has := strings.Fields(string(text)); slices.Contains(has, "memory") && slices.Contains(has, "pids") {
		return nil
	}
	return os.WriteFile(file, []byte("+memory +pids"), 0o644)
}

// cgroupPrefix begins the names of cgroups of commands. The pid of the process that made it follows.
const cgroupPrefix = "sentinel-"

// removeLeft removes the cgroups that processes left which have ended. One that has processes stays.
func removeLeft(parent string) {
	for _, name := range names(parent) {
		rest, is := strings.CutPrefix(name, cgroupPrefix)
		maker, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(maker)
		if is && err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.Remove(filepath.Join(parent, name)) // a later host tries again
		}
	}
}

// enter moves this process to the cgroup and opens its count of processes that the kernel has ended. In version 1 that is
// the main thread alone, whose child the command is: memory is that of the main thread, and to move all threads takes 4 ms
// for each hierarchy.
func (c *cgroup) enter() (events *os.File, err error) {
	for _, dir := range c.Folders {
		if err := os.WriteFile(filepath.Join(dir, c.Enter), []byte("0"), 0o644); err != nil {
			return nil, err
		}
	}
	return os.Open(c.Events)
}

// exceeded returns the limit of memory if the kernel has ended processes for it, "" if not. A machine that has no
// memory left counts too: its commands are ended first.
func (c *cgroup) exceeded() string {
	if c == nil {
		return ""
	}
	f, err := os.Open(c.Events)
	if err != nil {
		return ""
	}
	defer f.Close()
	if !hasEndedProcesses(f) {
		return ""
	}
	return memoryExceeded(c.Memory)
}

// hasEndedProcesses reports whether the kernel has ended processes of the cgroup whose events are in a file.
func hasEndedProcesses(events io.ReaderAt) bool {
	var buffer [512]byte
	n, _ := events.ReadAt(buffer[:], 0) // the end comes first
	for line := range strings.Lines(string(buffer[:n])) {
		if count, found := strings.CutPrefix(line, "oom_kill "); found {
			return strings.TrimSpace(count) != "0"
		}
	}
	return false
}

// remove removes the cgroup of a command that has ended, now or later.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	for range 5 { // the kernel may count a process for a moment after its end
		if c.removed() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	leftCgroups.Lock()
	leftCgroups.list = append(leftCgroups.list, c)
	leftCgroups.Unlock()
}

// removed removes the folders of the cgroup that have no processes, and reports whether none is left.
func (c *cgroup) removed() bool {
	c.Folders = slices.DeleteFunc(c.Folders, func(dir string) bool {
		err := os.Remove(dir)
		return err == nil || errors.Is(err, os.ErrNotExist)
	})
	return len(c.Folders) == 0
}
