package confine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits that have no field.
const (
	minFree  = 256 << 20 // free bytes on the disk of a command's folders: it is that of the host
	maxFiles = 1_000_000 // files that a command makes
)

// A beginning is what there was before the command began.
type beginning struct {
	now    time.Time // on the clock of the file system
	shared uint64    // bytes of shared memory of the machine
	free   uint64    // bytes of the disk
}

func (p *plan) measure() beginning {
	return beginning{now: time.Now().Add(-10 * time.Millisecond), shared: sharedMemory(), free: freeSpace(p.Write[0])}
}

// watch sends the limit of processes or memory that the command exceeds. It is in the PID
// namespace of the command, so /proc has its processes alone.
func (p *plan) watch(over chan<- string, begun beginning) {
	for {
		time.Sleep(pause)
		processes := pids()
		shared := sharedMemory()
		shared -= min(begun.shared, shared)
		switch memory, threads := memoryOf(processes, p.Limits.Memory); {
		case threads > p.Limits.Processes:
			over <- fmt.Sprintf("it has more than %d processes and threads", p.Limits.Processes)
			return
		case memory+shared > p.Limits.Memory:
			over <- fmt.Sprintf("its processes have more than %s of memory", size(p.Limits.Memory))
			return
		}
	}
}

// watchDisk sends the limit of disk that the command exceeds. To walk its folders takes long, so
// that is done when the free space of the disk has changed, and at most a twentieth of the time.
func (p *plan) watchDisk(over chan<- string, begun beginning) {
	last := begun.free
	for next := time.Now(); ; time.Sleep(pause) {
		free := freeSpace(p.Write[0])
		fallen := begun.free - min(free, begun.free)
		if free < minFree && free < begun.free {
			over <- fmt.Sprintf("less than %s of disk are free", size(minFree))
			return
		}
		// A disk that has lost as much as the command may take is looked at in any case.
		if free == last || time.Now().Before(next) && fallen < p.Limits.Disk {
			continue
		}
		began := time.Now()
		u := p.used(begun.now)
		last, next = free, time.Now().Add(20*time.Since(began))
		u.bytes += deletedFiles(pids(), p.Write[0])
		switch {
		case u.bytes > p.Limits.Disk, u.hidden && fallen > p.Limits.Disk:
			over <- fmt.Sprintf("its files have more than %s", size(p.Limits.Disk))
			return
		case u.files > maxFiles:
			over <- fmt.Sprintf("it has made more than %d files", maxFiles)
			return
		}
	}
}

func size(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// pids returns the processes of /proc besides this one.
func pids() (list []string) {
	for _, name := range names("/proc") {
		if name[0] >= '0' && name[0] <= '9' && name != "1" {
			list = append(list, name)
		}
	}
	return list
}

func names(path string) []string {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	list, _ := dir.Readdirnames(-1) // what was read counts
	return list
}

// memoryOf returns the private memory of processes in bytes, and the number of their threads.
// Memory that processes share since a fork counts once if the sum of all would be more than
// limit.
func memoryOf(processes []string, limit uint64) (sum, threads uint64) {
	const fieldThreads, fieldAfterName = 20, 3 // of proc_pid_stat(5)
	page := uint64(os.Getpagesize())
	for _, pid := range processes {
		text, err := os.ReadFile("/proc/" + pid + "/statm")
		if err != nil {
			continue // it has ended
		}
		if f := strings.Fields(string(text)); len(f) > 2 {
			resident, _ := strconv.ParseUint(f[1], 10, 64) // the kernel wrote numbers
			shared, _ := strconv.ParseUint(f[2], 10, 64)
			sum += (resident - min(shared, resident)) * page
		}
		text, err = os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		if f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])); len(f) > fieldThreads-fieldAfterName {
			n, _ := strconv.ParseUint(f[fieldThreads-fieldAfterName], 10, 64)
			threads += n
		}
	}
	if sum <= limit {
		return sum, threads
	}
	exact := uint64(0)
	for _, pid := range processes {
		n, ok := proportional(pid)
		if !ok {
			return sum, threads
		}
		exact += n
	}
	return exact, threads
}

// proportional returns the memory of a process in bytes, of what it shares its part.
func proportional(pid string) (n uint64, ok bool) {
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0, os.IsNotExist(err) || err == unix.ESRCH //nolint:errorlint // ended meanwhile
	}
	return kibibytes(string(text), "Pss_Anon:")
}

// sharedMemory returns the bytes of shared memory on this machine. Only this number includes
// memory that no process has mapped, such as memfd_create and temporary file systems. Shared
// memory that other programs allocate while a command runs is counted as the command's.
func sharedMemory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	n, _ := kibibytes(string(text), "Shmem:")
	return n
}

// kibibytes returns the number of a line that begins with a name, in bytes.
func kibibytes(text, name string) (n uint64, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, name); found {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// A usage is what a command has in its folders.
type usage struct {
	bytes, files uint64
	hidden       bool // a folder cannot be read
}

// used returns what was made or changed since a time. That is the time of an inode, which a
// process cannot choose.
func (p *plan) used(since time.Time) (u usage) {
	for _, dir := range append([]string{layersPath}, p.Write...) {
		var top unix.Stat_t
		_ = unix.Lstat(dir, &top) // else it is not walked either
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				u.hidden = u.hidden || os.IsPermission(err)
				return nil
			}
			var s unix.Stat_t
			if unix.Lstat(path, &s) != nil {
				return nil
			}
			if s.Dev != top.Dev && e.IsDir() { // a cache of the user
				return fs.SkipDir
			}
			if !time.Unix(s.Ctim.Unix()).Before(since) {
				u.files++
				u.bytes += uint64(s.Blocks) * 512 / max(uint64(s.Nlink), 1)
			}
			return nil
		})
	}
	return u
}

// deletedFiles returns the bytes of files without a name that processes have open, on the file
// system of a folder.
func deletedFiles(processes []string, folder string) (sum uint64) {
	var place, s unix.Stat_t
	if unix.Stat(folder, &place) != nil {
		return 0
	}
	seen := map[uint64]bool{}
	for _, pid := range processes {
		dir := "/proc/" + pid + "/fd/"
		for _, name := range names(dir) {
			if unix.Stat(dir+name, &s) == nil && s.Nlink == 0 && s.Dev == place.Dev && !seen[s.Ino] {
				seen[s.Ino] = true
				sum += uint64(s.Blocks) * 512
			}
		}
	}
	return sum
}

func freeSpace(dir string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
