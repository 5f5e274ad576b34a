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

// minFree is the space on the disk of a command's folders below which it is ended: the disk
// is that of the host.
const minFree = 256 << 20

// watch sends the limit that the processes of the command exceed together. It is in the
// command's PID namespace, so /proc has its processes alone.
func (p *plan) watch(over chan<- string) {
	disk := newDiskWatch(p)
	for {
		time.Sleep(pause)
		processes := pids()
		switch {
		case uint64(len(processes)) > p.Limits.Processes:
			over <- fmt.Sprintf("more than %d processes at one time", p.Limits.Processes)
		case memoryOf(processes, p.Limits.Memory) > p.Limits.Memory:
			over <- fmt.Sprintf("its processes have more than %s of memory", size(p.Limits.Memory))
		default:
			if why := disk.exceeded(); why != "" {
				over <- why
			}
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
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read counts
	for _, name := range names {
		if name[0] >= '0' && name[0] <= '9' && name != "1" {
			list = append(list, name)
		}
	}
	return list
}

// memoryOf returns the memory of processes in bytes, without files of the disk. Memory that
// processes share counts once if the sum of all would be more than limit.
func memoryOf(processes []string, limit uint64) (sum uint64) {
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
	}
	if sum <= limit {
		return sum
	}
	exact := uint64(0)
	for _, pid := range processes {
		n, ok := proportional(pid)
		if !ok {
			return sum
		}
		exact += n
	}
	return exact
}

// proportional returns the memory of a process in bytes, of what it shares its part.
func proportional(pid string) (n uint64, ok bool) {
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0, os.IsNotExist(err) || err == unix.ESRCH //nolint:errorlint // ended meanwhile
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "Pss_Anon:"); found {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// A diskWatch measures what a command adds to its folders. To walk them takes long, so that
// is done when the free space of the disk has changed, and at most a twentieth of the time.
type diskWatch struct {
	folders []string
	limit   uint64
	begin   uint64 // bytes in the folders
	free    uint64 // of the disk at the last walk
	next    time.Time
}

func newDiskWatch(p *plan) *diskWatch {
	d := &diskWatch{folders: p.Write, limit: p.Limits.Disk}
	d.begin, d.free = d.walk(), freeSpace(d.folders[0])
	return d
}

// walk returns the bytes of all files in the folders.
func (d *diskWatch) walk() (sum uint64) {
	began := time.Now()
	for _, dir := range d.folders {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what cannot be read is not counted: removed meanwhile, or without rights
			}
			var s unix.Stat_t
			if unix.Lstat(path, &s) == nil && !(s.Nlink > 1 && e.Type().IsRegular()) {
				sum += uint64(s.Blocks) * 512
			} else {
				sum += uint64(s.Blocks) * 512 / max(uint64(s.Nlink), 1)
			}
			return nil
		})
	}
	d.next = time.Now().Add(20 * time.Since(began))
	return sum
}

// exceeded returns why the command is ended, or nothing.
func (d *diskWatch) exceeded() string {
	free := freeSpace(d.folders[0])
	if free < minFree && free < d.free {
		return fmt.Sprintf("less than %s of disk are free", size(minFree))
	}
	// A disk that has lost as much as the command may take is looked at in any case.
	if free == d.free || time.Now().Before(d.next) && free+d.limit > d.free {
		return ""
	}
	d.free = free
	if used := d.walk(); used > d.begin+d.limit {
		return fmt.Sprintf("its files have more than %s", size(d.limit))
	}
	return ""
}

func freeSpace(dir string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
