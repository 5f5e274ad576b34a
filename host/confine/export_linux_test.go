package confine

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Lower makes this machine one without namespaces, or with an older version of Landlock, 0 for
// none, until the test ends.
func Lower(t testing.TB, namespaces bool, landlock int) {
	have := kernel()
	if have.namespaces != nil && namespaces {
		t.Skip("this machine has no namespaces: ", have.namespaces)
	}
	before := kernel
	t.Cleanup(func() { kernel = before })
	have.landlock = min(have.landlock, landlock)
	if !namespaces {
		have.namespaces = errors.New("lowered by a test")
		have.cgroup = have.namespaces
	}
	kernel = sync.OnceValue(func() machine { return have })
}

// WatchAlone gives commands no cgroup until the test ends: the launcher watches their memory.
func WatchAlone(t testing.TB) {
	have, before := kernel(), kernel
	t.Cleanup(func() { kernel = before })
	have.cgroup = errors.New("lowered by a test")
	kernel = sync.OnceValue(func() machine { return have })
}

// NewCgroup makes a cgroup by a folder /proc and returns its folders.
func NewCgroup(proc string, l Limits) ([]string, error) {
	c, err := newCgroup(proc, l)
	if err != nil {
		return nil, err
	}
	return c.Folders, nil
}

// ShareEpoll gives each command that many watches of epoll until the test ends.
func ShareEpoll(t testing.TB, most uint64) {
	before := epollShare
	t.Cleanup(func() { epollShare = before })
	epollShare = func() uint64 { return most }
}

// LimitDuringALook returns the limit that all processes of this machine exceed while a closer look has not ended, as if the
// machine had grown by all of their memory, or only by what is shared while they keep the look waiting.
func LimitDuringALook(memory uint64, waits bool) string {
	w := &watcher{limits: Limits{Memory: memory, Processes: math.MaxUint64}, closer: &closerLook{limit: make(chan string)}}
	w.begun.now = time.Now().Add(-100_000 * time.Hour) // before the machine began
	if waits {
		w.begun.memory.anonymous = math.MaxUint64
		w.closer.mayWait.Store(1)
	}
	return w.exceeds(time.Now())
}

// LimitOfObjects returns the limit that a command with 8 GiB exceeds on a machine with so much memory, whose kernel has grown by so
// much for so long. The numbers are GiB.
func LimitOfObjects(total, available, objects uint64, lasts time.Duration) string {
	w := &watcher{limits: Limits{}.withDefaults(), objectsSince: time.Now().Add(-lasts)}
	w.begun.memory = machineMemory{total: total << 30}
	return w.exceedsObjects(machineMemory{total: total << 30, available: available << 30, objects: objects << 30})
}

// LimitOfAllObjects returns what a look finds that may find nothing in the kernel, where all has been there for so long.
func LimitOfAllObjects(lasts time.Duration) string {
	w := &watcher{limits: Limits{Memory: math.MaxUint64 / 2, Processes: math.MaxUint64}, closer: &closerLook{limit: make(chan string)}, objectsSince: time.Now().Add(-lasts)}
	return w.exceeds(time.Now())
}

// DiskDuringAWalk returns the limit of disk that a command with one folder exceeds during a walk that has lasted so long,
// after which its disk has lost so many bytes.
func DiskDuringAWalk(dir string, lasts time.Duration, limit, lost uint64) string {
	d := diskOf(dir)
	d.free += lost
	w := &watcher{limits: Limits{Disk: limit}, begun: beginning{disks: []disk{d}}}
	walk := &folderWalk{began: time.Now().Add(-lasts), used: make(chan usage)}
	return (&diskWatch{watcher: w, walk: walk}).exceeds()
}

// FilesOf returns how many files a walk of a folder finds until there are more than so many bytes.
func FilesOf(dir string, most uint64) uint64 {
	u := newUsage(time.Time{}, most)
	u.walk(unix.AT_FDCWD, dir, maxLevels)
	return u.files
}

// ExactMemory returns the memory of one process with a folder as in /proc, where that of the machine has grown so much.
func ExactMemory(dir string, limit, grown uint64) uint64 {
	w := &watcher{limits: Limits{Memory: limit}}
	return w.exactMemory([]process{{dir: dir, tasks: dir + "/task/"}}, grown, 0)
}

// Ends reports whether a process with a folder as in /proc ends or has ended.
func Ends(dir string) bool { return process{dir: dir, tasks: dir + "/task/"}.isEnding() }

// Sockets returns the Unix sockets below a folder.
func Sockets(folder string) []string { return sockets([]string{folder}) }

// Page returns the lists of this package for the page of operators.
func Page() string {
	var b strings.Builder
	list := func(title string, items ...string) {
		fmt.Fprintf(&b, "| %s | `%s` |\n", title, strings.Join(items, "`, `"))
	}
	b.WriteString("\n## Lists\n| what a command reads | |\n|---|---|\n")
	list("folders of programs, and those of PATH", systemFolders...)
	list("of `/etc`", settings...)
	list("toolchains in the home", toolchains...)
	list("of those not", secretsOfToolchains...)
	var shown []string
	for _, c := range cacheFolders("/home/user", func(string) string { return "" }) {
		shown = append(shown, "~/"+c.to)
	}
	list("caches, in its own home; what it changes there is its own", shown...)
	list("files of `/proc` that are covered, and all that only the superuser reads", ofMachine...)
	l := Limits{}.withDefaults()
	b.WriteString("\n| limit | |\n|---|---|\n")
	fmt.Fprintf(&b, "| inotify instances and watches, and watches of epoll | 1/%d of those of the user |\n", shareOfWatches)
	fmt.Fprintf(&b, "| signals and timers that wait, message queues, locked memory | 1/%d of those of the user |\n", shareOfWatches)
	fmt.Fprintf(&b, "| buffers of TCP and UDP | 1/128 of the memory of the machine, at least %s |\n", size(leastTransport))
	fmt.Fprintf(&b, "| open files of all processes | 1/%d of those of the machine |\n", shareOfFiles)
	fmt.Fprintf(&b, "| memory of all processes | %s |\n| added to its folders | %s |\n| processes and threads | %d; where the user or the container has a limit, 1/%d of 3/%d of what is left there and not promised to other commands |\n| sessions (setsid) | %d |\n| sockets | %d |\n| one file | %s |\n| open files of a process | %d |\n| free space of each disk | not less than %s |\n| free inodes of each disk | not less than 1/%d of all, or %d |\n",
		size(l.Memory), size(l.Disk), l.Processes, partsOfProcesses, partsOfProcesses, maxSessions, maxSockets, size(l.FileSize), l.Files, size(minFree), shareLeft, maxLeft)
	b.WriteString("\n| where the kernel has | what does not hold |\n|---|---|\n")
	for _, m := range []struct {
		name string
		machine
	}{
		{"namespaces and Landlock 6", machine{landlock: 6}},
		{"namespaces, and Landlock before 6", machine{landlock: 5}},
		{"namespaces, and no Landlock", machine{}},
		{"namespaces and Landlock 6, and no cgroup", machine{landlock: 6, cgroup: errors.New("why")}},
		{"no namespaces, and Landlock 6", machine{landlock: 6, namespaces: errors.New("why"), cgroup: errors.New("why")}},
		{"no namespaces, and Landlock 5", machine{landlock: 5, namespaces: errors.New("why"), cgroup: errors.New("why")}},
		{"no namespaces, and Landlock 2", machine{landlock: 2, namespaces: errors.New("why"), cgroup: errors.New("why")}},
		{"no namespaces, and Landlock 1", machine{landlock: 1, namespaces: errors.New("why"), cgroup: errors.New("why")}},
		{"neither", machine{namespaces: errors.New("why"), cgroup: errors.New("why")}},
	} {
		var texts []string
		for _, g := range m.gaps() {
			texts = append(texts, g.String())
		}
		if len(texts) == 0 {
			texts = []string{"everything holds"}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", m.name, strings.Join(texts, "; "))
	}
	return b.String()
}

// A Bound is a limit of processes and threads that commands share with the host.
type Bound struct {
	Name       string
	Most, Used uint64
}

// BoundsOfCgroups returns the limits of cgroups as a folder /proc names them.
func BoundsOfCgroups(proc string) (list []Bound) {
	for _, b := range boundsOfCgroups(proc) {
		list = append(list, Bound{b.name, b.most, b.used})
	}
	return list
}

// ProcessesOfUser returns how many processes and threads a user has in a folder /proc.
func ProcessesOfUser(proc string, uid int) uint64 { return processesOfUser(proc, uid) }

// HasBoundOfIDs reports whether a release of Linux has a bound of ids in each PID namespace.
func HasBoundOfIDs(release string) bool { return hasBoundOfIDs(release) }

// Part returns what a command gets under one limit where others were promised some.
func Part(most, used, promised uint64) uint64 {
	n, _ := part([]bound{{most: most, used: used}}, promised)
	return n
}
