package confine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits that have no field.
const (
	minFree   = 256 << 20 // free bytes on the disks of a command's folders: they are those of the host
	maxLeft   = 100_000   // free inodes that a disk has to keep, if that is less than a share of all
	shareLeft = 8         // that share: an eighth
	maxFiles  = 1_000_000 // files that a command makes
	maxLevels = 256       // folders in each other that are looked at
)

// A beginning is what there was before the command began.
type beginning struct {
	now    time.Time // on the clock of the file system
	memory machineMemory
	files  uint64 // that the machine had open
	disks  []disk
}

// watcher returns that of a command that begins now.
func (p *plan) watcher() *watcher {
	w := &watcher{limits: p.Limits, next: time.Now().Add(pause), folders: slices.Clone(p.Write), exceeded: make(chan string, 2), main: make(chan func())}
	for i := range p.Caches { // beside them is a folder of the kernel, which nothing can read
		w.folders = append(w.folders, filepath.Join(layersPath, strconv.Itoa(i), layerUpper))
	}
	w.epollMost = p.Epoll
	w.table, _ = os.Open("/proc/sys/fs/file-nr") // it stays open for when no other can be opened
	files, _ := openFilesOfMachine(w.table)
	memory := memoryOfMachine()
	memory.kernel = grown(freeOfProcessors(), memory.kernel) // else the command could take as much unseen
	w.begun = beginning{now: time.Now().Add(-10 * time.Millisecond), memory: memory, files: files, disks: disksOf(w.folders)}
	return w
}

// watchDisk ends a command that exceeds the limit of disk. To walk its folders takes long, so
// that is done when the free space of a disk has changed, and at most a twentieth of the time.
func (w *watcher) watchDisk() {
	disks, limit := w.begun.disks, w.limits.Disk
	last := make([]uint64, len(disks))
	for i, d := range disks {
		last[i] = d.free
	}
	var changed bool
	var rest time.Duration
	for next := time.Now(); ; time.Sleep(max(pause, rest)) {
		fallen := uint64(0)
		rest = 0
		for i, d := range disks {
			now := diskOf(d.dir)
			free := now.free
			switch {
			case free < minFree && free < d.free:
				w.end(fmt.Sprintf("less than %s of disk are free", size(minFree)))
				return
			case now.inodes < now.inodesLeft() && now.inodes < d.inodes:
				w.end(fmt.Sprintf("less than %d more files fit on the disk", now.inodesLeft()))
				return
			}
			changed, fallen = changed || free != last[i], max(fallen, grown(free, d.free))
			last[i] = free
		}
		// A disk that has lost as much as the command may take is looked at in any case.
		if fallen < limit && (!changed || time.Now().Before(next)) {
			continue
		}
		began := time.Now()
		u := w.used(fallen > limit)
		changed, rest = false, time.Since(began)
		next = time.Now().Add(20 * rest)
		switch {
		case u.bytes > limit, fallen > limit && u.unseen:
			w.end(fmt.Sprintf("its files have more than %s", size(limit)))
			return
		case u.files > maxFiles:
			w.end(fmt.Sprintf("it has made more than %d files", maxFiles))
			return
		}
	}
}

// A usage is what a command has on the disks of its folders.
type usage struct {
	bytes, files uint64
	unseen       bool // there may be more
}

// used returns what was made or changed since the command began. That is the time of an inode,
// which a process cannot choose.
func (w *watcher) used(closely bool) (u usage) {
	for _, dir := range w.folders {
		u.walk(unix.AT_FDCWD, dir, w.begun.now, maxLevels)
	}
	w.onMain(func() {
		list := processes()
		open := w.threads.openFilesOf(list)
		memory := memoryDevices()
		for device, n := range open.deleted {
			if !slices.Contains(memory, device) { // a layer over a cache has a device of its own
				u.bytes += n
			}
		}
		u.unseen = u.unseen || open.unseen || closely && mapsDeleted(list)
	})
	return u
}

// walk adds what is in a folder. It goes by descriptors, since paths may be longer than the system
// opens.
func (u *usage) walk(parent int, name string, since time.Time, levels int) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if parent != unix.AT_FDCWD {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat(parent, name, flags, 0)
	if err != nil {
		u.unseen = u.unseen || err != unix.ENOENT && err != unix.ENOTDIR // else it is another one now
		return
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	var top unix.Stat_t
	if levels == 0 || unix.Fstat(fd, &top) != nil {
		u.unseen = true
		return
	}
	for {
		names, err := dir.Readdirnames(1000)
		for _, name := range names {
			var s unix.Stat_t
			if err := unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				u.unseen = u.unseen || err != unix.ENOENT
				continue
			}
			isFolder := s.Mode&unix.S_IFMT == unix.S_IFDIR
			if isFolder && s.Dev != top.Dev { // a cache of the user
				continue
			}
			if !time.Unix(s.Ctim.Unix()).Before(since) {
				u.files++
				u.bytes += uint64(s.Blocks) * 512 / max(uint64(s.Nlink), 1) //nolint:unconvert // its type depends on the processor
			}
			if isFolder {
				u.walk(fd, name, since, levels-1)
			}
		}
		if err != nil {
			u.unseen = u.unseen || !errors.Is(err, io.EOF)
			return
		}
	}
}

// mapsDeleted reports whether processes have mapped files without a name, which they need not have
// open.
func mapsDeleted(list []process) bool {
	return maps(list, func(path string, _ uint64) bool { return !isMemory(path) })
}

// mapsMemory reports whether processes have mapped memory that is a file without a name and not open. The kernel shows which
// of its pages are mapped, and not how many it has. Segments of System V are counted by their namespace.
func mapsMemory(list []process, files openFiles) bool {
	return maps(list, func(path string, inode uint64) bool {
		return isMemory(path) && !strings.HasPrefix(path, "/SYSV") && !files.memory[inode]
	})
}

// maps reports whether a process has mapped a file without a name that is one of those, or cannot be read.
func maps(list []process, isOne func(path string, inode uint64) bool) bool {
	for _, process := range list {
		text, err := os.ReadFile(process.dir + "/maps")
		if err != nil && !hasEnded(err) {
			return true
		}
		for line := range bytes.Lines(text) {
			before, found := bytes.CutSuffix(line, []byte(" (deleted)\n"))
			if start := bytes.IndexByte(before, '/'); found && start >= 0 {
				f := bytes.Fields(before[:start]) // see proc_pid_maps(5)
				if isOne(string(before[start:]), number(f[len(f)-1])) {
					return true
				}
			}
		}
	}
	return false
}

// isMemory reports whether the path of a file without a name is that of memory, which the kernel shows as one.
func isMemory(path string) bool {
	return strings.HasPrefix(path, "/memfd:") || strings.HasPrefix(path, "/SYSV") || path == "/dev/zero"
}
