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
	w.epollMost, w.events = p.Epoll, p.events
	w.table, _ = os.Open("/proc/sys/fs/file-nr") // it stays open for when no other can be opened
	files, _ := openFilesOfMachine(w.table)
	memory := memoryOfMachine()
	memory.kernel = grown(freeOfProcessors(), memory.kernel) // else the command could take as much unseen
	w.begun = beginning{now: time.Now().Add(-10 * time.Millisecond), memory: memory, files: files, disks: disksOf(w.folders)}
	return w
}

// watchDisk ends a command that exceeds the limit of disk.
func (w *watcher) watchDisk() {
	for d := (diskWatch{watcher: w}); ; time.Sleep(pause) {
		if limit := d.exceeds(); limit != "" {
			w.end(limit)
			return
		}
	}
}

// A diskWatch is what looks at disks know of each other.
type diskWatch struct {
	*watcher
	free    []uint64    // bytes of each disk at the last look
	changed bool        // since the last walk began
	walk    *folderWalk // that goes on; nil for none
	next    time.Time   // of a walk without a ground
	atOnce  time.Time   // of one with a ground
}

// longestWalk is how long a walk of the folders of a command may last until what their disks lose in it counts as the command's.
const longestWalk = 10 * time.Second

// A folderWalk finds out what a command has in its folders. The command can make it last.
type folderWalk struct {
	began  time.Time
	fallen uint64     // the free bytes that a disk had lost then
	used   chan usage // at its end
}

// exceeds returns the limit of disk that the command exceeds. To walk its folders takes long, so
// that is done beside this look, when the free space of a disk has changed, and at most a twentieth of the time.
func (w *diskWatch) exceeds() string {
	fallen := uint64(0)
	for i, d := range w.begun.disks {
		now := diskOf(d.dir)
		switch {
		case now.free < minFree && now.free < d.free:
			return fmt.Sprintf("less than %s of disk are free", size(minFree))
		case now.inodes < now.inodesLeft() && now.inodes < d.inodes:
			return fmt.Sprintf("less than %d more files fit on the disk", now.inodesLeft())
		}
		if i == len(w.free) {
			w.free = append(w.free, d.free)
		}
		w.changed = w.changed || now.free != w.free[i]
		w.free[i], fallen = now.free, max(fallen, grown(now.free, d.free))
	}
	limit := w.limits.Disk
	exceeded := fmt.Sprintf("its files have more than %s", size(limit))
	if w.walk != nil {
		select {
		case u := <-w.walk.used:
			lasted := time.Since(w.walk.began)
			w.atOnce, w.next = time.Now().Add(lasted), time.Now().Add(20*lasted)
			switch {
			case u.bytes > limit, w.walk.fallen > limit && u.unseen:
				return exceeded
			case u.files > maxFiles:
				return fmt.Sprintf("it has made more than %d files", maxFiles)
			}
			w.walk = nil
		default:
			if time.Since(w.walk.began) > longestWalk && grown(w.walk.fallen, fallen) > limit {
				return exceeded
			}
			return ""
		}
	}
	// A disk that has lost as much as the command may take is looked at in any case.
	if now := time.Now(); now.Before(w.atOnce) || fallen < limit && (!w.changed || now.Before(w.next)) {
		return ""
	}
	walk := &folderWalk{began: time.Now(), fallen: fallen, used: make(chan usage, 1)}
	w.walk, w.changed = walk, false
	go func() { walk.used <- w.used(fallen > limit) }()
	return ""
}

// A usage is what a command has on the disks of its folders.
type usage struct {
	bytes, files uint64
	unseen       bool // there may be more

	since, began time.Time // when the command and this walk began, on the clock of the file system
	most         uint64    // bytes that the command may have: a walk that has found more ends
	met          map[folderID]bool
}

// newUsage returns that of a walk that begins now.
func newUsage(since time.Time, most uint64) usage {
	return usage{since: since, began: time.Now().Add(-10 * time.Millisecond), most: most, met: map[folderID]bool{}}
}

// exceeds reports whether there is more than the command may have.
func (u *usage) exceeds() bool { return u.bytes > u.most || u.files > maxFiles }

// used returns what was made or changed since the command began. That is the time of an inode,
// which a process cannot choose.
func (w *watcher) used(closely bool) usage {
	u := newUsage(w.begun.now, w.limits.Disk)
	for _, dir := range w.folders {
		u.walk(unix.AT_FDCWD, dir, maxLevels)
	}
	if u.exceeds() {
		return u
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
// opens. A folder that was moved since the walk began is not walked again: a command that moves
// folders to where the walk has not been could keep it from its end.
func (u *usage) walk(parent int, name string, levels int) {
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
	id := folderID{Device: uint64(top.Dev), Inode: top.Ino} //nolint:unconvert // its type depends on the processor
	if u.met[id] && !time.Unix(top.Ctim.Unix()).Before(u.began) {
		return
	}
	u.met[id] = true
	for {
		names, err := dir.Readdirnames(1000)
		for _, name := range names {
			if u.exceeds() {
				return
			}
			var s unix.Stat_t
			if err := unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				u.unseen = u.unseen || err != unix.ENOENT
				continue
			}
			isFolder := s.Mode&unix.S_IFMT == unix.S_IFDIR
			if isFolder && s.Dev != top.Dev { // a cache of the user
				continue
			}
			if !time.Unix(s.Ctim.Unix()).Before(u.since) {
				u.files++
				u.bytes += uint64(s.Blocks) * 512 / max(uint64(s.Nlink), 1) //nolint:unconvert // its type depends on the processor
			}
			if isFolder {
				u.walk(fd, name, levels-1)
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
