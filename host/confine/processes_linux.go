package confine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Where the user or the container may have few processes, those of commands must leave the host some: without
// a thread that it needs, the Go runtime ends the program. Three quarters of what is left are for all commands
// together, and each command gets a quarter of that part which earlier ones were not promised.
const (
	partsOfProcesses = 4
	// leastProcesses is what a shell line with a pipeline needs. With less, no command is executed.
	leastProcesses = 16
)

// A bound is a limit of processes and threads that commands share with the host.
type bound struct {
	name       string // for people
	most, used uint64
}

// free returns how many more processes there may be.
func (b bound) free() uint64 { return grown(b.used, b.most) }

func (b bound) String() string {
	return fmt.Sprintf("%s is %d, of which %d are used", b.name, b.most, b.used)
}

// promised counts the processes that the commands of this process may have.
var promised struct {
	sync.Mutex
	processes uint64
}

// promise returns how many processes and threads a command gets of those that it wants. They are given back
// by release.
func promise(want uint64) (n uint64, err error) {
	promised.Lock()
	defer promised.Unlock()
	n, least := part(bounds("/proc"), promised.processes)
	if n < leastProcesses {
		return 0, fmt.Errorf("confine: %s, and commands that are being executed may take %d: that leaves too few for another one; raise the limit, or execute fewer at once", least, promised.processes)
	}
	n = min(n, want)
	promised.processes += n
	return n, nil
}

func release(n uint64) {
	promised.Lock()
	defer promised.Unlock()
	promised.processes -= n
}

// ProcessLimit returns how many processes and threads a command may have while no other is executed, and the limit
// that decides it, "" for that of commands.
func ProcessLimit() (n uint64, by string) {
	n, least := part(bounds("/proc"), 0)
	if most := (Limits{}).withDefaults().Processes; n >= most {
		return most, ""
	}
	return n, least.String()
}

// part returns what one command may have of processes where others were promised some, and the bound that decides it.
func part(list []bound, promised uint64) (n uint64, least bound) {
	n = math.MaxUint64
	for _, b := range list {
		ofCommands := b.free() / partsOfProcesses * (partsOfProcesses - 1)
		if own := grown(promised, ofCommands) / partsOfProcesses; own < n {
			n, least = own, b
		}
	}
	return n, least
}

// bounds returns the limits of the user and of the cgroups of this process. proc is the folder /proc.
func bounds(proc string) (list []bound) {
	var own syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NPROC, &own); err == nil && own.Cur != unix.RLIM_INFINITY {
		list = append(list, bound{"the limit of processes of the user (ulimit -u)", own.Cur, processesOfUser(proc, os.Getuid())})
	}
	return append(list, boundsOfCgroups(proc)...)
}

// processesOfUser returns how many processes and threads a user has, as the kernel counts them for its limit. Those
// in a namespace around this one are not seen.
func processesOfUser(proc string, uid int) (n uint64) {
	var buffer [4096]byte
	user := strconv.Itoa(uid)
	for _, name := range names(proc) {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		is := false
		for line := range strings.Lines(string(readInto(buffer[:], proc+"/"+name+"/status"))) {
			switch f := strings.Fields(line); {
			case len(f) < 2:
			case f[0] == "Uid:":
				is = f[1] == user
			case f[0] == "Threads:" && is:
				threads, _ := strconv.ParseUint(f[1], 10, 64) // the kernel wrote it
				n += threads
			}
		}
	}
	return n
}

// boundsOfCgroups returns the limits of the cgroup of this process and of those above it. The tasks of a cgroup
// count for all above.
func boundsOfCgroups(proc string) (list []bound) {
	for _, controller := range []string{"", "pids"} {
		mount, dir := ownCgroup(proc, controller)
		for dir != "" {
			if b, ok := boundOfCgroup(dir); ok {
				list = append(list, b)
			}
			if dir == mount {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	return list
}

// ownCgroup returns the folder of the cgroup of this process and the mount point above it, "" for none. controller
// is empty for the one hierarchy of version 2.
func ownCgroup(proc, controller string) (mount, dir string) {
	cgroups, err := os.ReadFile(proc + "/self/cgroup")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(cgroups)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && (f[0] == "0") == (controller == "") && strings.Contains(","+f[1]+",", ","+controller+",") {
			return cgroupFolder(proc, controller, f[2])
		}
	}
	return "", ""
}

// boundOfCgroup returns the limit of a cgroup. Some have none, such as the root of all.
func boundOfCgroup(dir string) (b bound, ok bool) {
	read := func(name string) (uint64, error) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // it may be "max"
	}
	most, err := read("pids.max")
	if err != nil {
		return b, false
	}
	used, err := read("pids.current")
	return bound{filepath.Join(dir, "pids.max"), most, used}, err == nil
}

// cgroupFolder returns the folder of a cgroup and the mount point above it, "" if its hierarchy is not mounted.
// controller is empty for version 2.
func cgroupFolder(proc, controller, path string) (mount, dir string) {
	mounts, err := os.ReadFile(proc + "/self/mountinfo")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		f, system := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(system) < 3 {
			continue
		}
		switch {
		case controller == "" && system[0] == "cgroup2":
		case controller != "" && system[0] == "cgroup" && strings.Contains(","+system[2]+",", ","+controller+","):
		default:
			continue
		}
		root, mount := f[3], mountEscapes.Replace(f[4])
		if !within(path, root) { // the mount shows another part: of a container, its own cgroup
			return mount, mount
		}
		return mount, filepath.Join(mount, filepath.Clean("/"+strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))))
	}
	return "", ""
}

// Of the ids of a PID namespace, the kernel uses the reserved ones once, and the launcher has some.
const (
	reservedIDs = 300
	launcherIDs = 16
)

// boundIDs bounds the ids of processes and threads of the PID namespace of this process, where the kernel has a bound for
// each namespace. It holds for the superuser too, whose processes the kernel does not limit, and who could start
// hundreds before the launcher looks. Where it cannot be written, the launcher's looks are all that holds.
func boundIDs(processes uint64) {
	var u unix.Utsname
	if unix.Uname(&u) != nil || !hasBoundOfIDs(unix.ByteSliceToString(u.Release[:])) {
		return // an earlier kernel would change the bound of the machine
	}
	_ = os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.FormatUint(reservedIDs+launcherIDs+processes, 10)), 0o644)
}

// hasBoundOfIDs reports whether a release of Linux has kernel.pid_max in each PID namespace: from 6.14 on.
func hasBoundOfIDs(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 6 || major == 6 && minor >= 14)
}

// mountEscapes are those of paths in /proc/self/mountinfo.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
