package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pause is how often limits of the whole command are looked at.
const pause = 100 * time.Millisecond

// longestLook is how long the exact memory of processes may take to find out. A process that is
// not executed while it allocates memory keeps others from reading how much it has.
const longestLook = 300 * time.Millisecond

// maxSockets bounds the sockets of a command: the ports of the machine are fewer than three times
// as many, and belong to all.
const maxSockets = 8000

// leastTransport is what a command may have in buffers of TCP and UDP at least, in bytes.
const leastTransport = 64 << 20

// manyPipes are as many pipes and sockets as it takes a command to fill the memory of the kernel.
const manyPipes = 256

// shareOfStores is the part of the limit of memory that a command may have in the kernel, in stores that few programs have
// much of, until a large kernel counts as its own.
const shareOfStores = 8

// maxSessions bounds the sessions of a command. The kernel divides the processors by session, and
// the launcher, which looks at limits, has one.
const maxSessions = 200

// A machineMemory is what the kernel counts for all processes of this machine, in bytes.
type machineMemory struct {
	anonymous, shared, pageTables, available uint64

	kernel  uint64 // in no process and no cache: pipes, sockets, semaphores, drivers, and freeOfProcessors
	slab    uint64 // of it, objects that it cannot reclaim, such as files, sockets and watches of epoll
	sockets uint64 // number

	transport     uint64 // in buffers of TCP and UDP, in all networks
	transportMost uint64 // that one command may have
}

func memoryOfMachine() (m machineMemory) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m
	}
	var total, elsewhere uint64
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "MemTotal":
			total = kibibytes(value)
		case "MemFree", "Buffers", "Cached", "SwapCached", "SReclaimable", "Hugetlb", "Zswap":
			elsewhere += kibibytes(value)
		case "AnonPages":
			m.anonymous = kibibytes(value)
			elsewhere += m.anonymous
		case "SUnreclaim":
			m.slab = kibibytes(value)
		case "Shmem":
			m.shared = kibibytes(value)
		case "PageTables":
			m.pageTables = kibibytes(value)
		case "MemAvailable":
			m.available = kibibytes(value)
		}
	}
	m.kernel = grown(elsewhere, total)
	if text, err = os.ReadFile("/proc/net/sockstat"); err == nil {
		for line := range bytes.Lines(text) {
			f := bytes.Fields(line)
			if len(f) > 2 && string(f[0]) == "sockets:" {
				m.sockets = number(f[2])
			}
			if i := slices.IndexFunc(f, func(b []byte) bool { return string(b) == "mem" }); i >= 0 && i+1 < len(f) {
				m.transport += number(f[i+1]) * uint64(os.Getpagesize())
			}
		}
	}
	// The kernel begins to take from connections when TCP has three parts of 64 of the memory of the
	// machine, if no other limit is set.
	m.transportMost = max(total/128, leastTransport)
	return m
}

// freeOfProcessors returns the bytes of memory that is free, but kept on a list of one processor.
// /proc/meminfo counts it as used. After programs have ended, it may be hundreds of megabytes.
func freeOfProcessors() (sum uint64) {
	text, err := os.ReadFile("/proc/zoneinfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if count, found := bytes.CutPrefix(bytes.TrimSpace(line), []byte("count:")); found {
			sum += number(bytes.TrimSpace(count))
		}
	}
	return sum * uint64(os.Getpagesize())
}

// kibibytes returns a number of the kernel as "12 kB" in bytes.
func kibibytes(value string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // the kernel wrote it
	return n << 10
}

// grown returns how much more there is, or 0.
func grown(from, to uint64) uint64 { return to - min(from, to) }

// A watcher looks whether a command exceeds limits of the whole.
type watcher struct {
	limits   Limits
	folders  []string // that the command writes
	begun    beginning
	exceeded chan string // the limit
	next     time.Time   // of a closer look at memory without a ground

	epollMost uint64    // watches of epoll that the command may have; 0 for no limit
	epollNext time.Time // of the next count of them

	transportNext time.Time // of the next sum of buffers of TCP and UDP
	table         *os.File  // with the number of open files of the machine; nil for no limit
	// Functions for the main thread, which has started the command: others are in a domain of
	// Landlock that does not allow to read what its processes have.
	main    chan func()
	threads runnable
}

// onMain executes f on the main thread.
func (w *watcher) onMain(f func()) {
	done := make(chan struct{})
	w.main <- func() { f(); close(done) }
	<-done
}

// end reports a limit and ends all processes of the command at once. This process needs time to
// end, during which they would go on.
func (w *watcher) end(limit string) {
	w.exceeded <- limit
	_ = syscall.Kill(-1, syscall.SIGKILL) // they may have ended
}

// watch ends a command that exceeds the limit of processes or memory.
func (w *watcher) watch() {
	runtime.LockOSThread() // to wait for no other thread
	for due := time.Now(); ; {
		if limit := w.exceeds(due); limit != "" {
			w.end(limit)
			return
		}
		rest := max(pause, time.Since(due))
		due = time.Now().Add(rest)
		time.Sleep(rest)
	}
}

// exceeds returns the limit of processes or memory that the command exceeds, in a look that was
// due at a time.
//
// What the kernel counts for the whole machine may be of other programs, which take and free
// memory meanwhile. It is a ground to look closer at once, and not at most a twentieth of the time.
// Only where a command keeps memory from being seen is it taken for the command's.
func (w *watcher) exceeds(due time.Time) string {
	list := processes()
	private, threads, sessions := uint64(0), uint64(0), map[int]bool{}
	for _, process := range list {
		private += process.private
		threads += process.threads
		sessions[process.session] = true
	}
	switch {
	case threads > w.limits.Processes:
		return fmt.Sprintf("it has more than %d processes and threads", w.limits.Processes)
	case len(sessions) > maxSessions:
		return fmt.Sprintf("it has more than %d sessions", maxSessions)
	}
	now, before, limit := memoryOfMachine(), w.begun.memory, w.limits.Memory
	if exceeded := w.exceedsEpoll(list, grown(before.slab, now.slab)); exceeded != "" {
		return exceeded
	}
	if exceeded := w.exceedsFiles(list); exceeded != "" {
		return exceeded
	}
	if grown(before.sockets, now.sockets) > maxSockets || grown(before.kernel, now.kernel) > limit {
		if exceeded := w.exceedsKernel(list, now); exceeded != "" {
			return exceeded
		}
	}
	if exceeded := w.exceedsTransport(list, now); exceeded != "" {
		return exceeded
	}
	shared := grown(before.shared, now.shared)
	atOnce := private+shared+grown(before.pageTables, now.pageTables) > limit || grown(now.available, before.available) > limit
	if !atOnce && time.Now().Before(w.next) {
		return ""
	}
	// A command that keeps its memory from being read, or the launcher from the processors, is taken
	// by what its processes and the machine say.
	memory := min(private, grown(before.anonymous, now.anonymous))
	if memory <= limit || time.Since(due) < longestLook {
		var tooLong <-chan time.Time
		if memory > limit {
			tooLong = time.After(longestLook - time.Since(due))
		}
		began, result := time.Now(), make(chan uint64, 1)
		go w.onMain(func() { result <- w.exactMemory(list, limit, shared) })
		select {
		case memory = <-result:
		case <-tooLong:
		}
		w.next = time.Now().Add(20 * time.Since(began))
	}
	if memory > limit {
		return fmt.Sprintf("its processes have more than %s of memory", size(limit))
	}
	return ""
}

// exceedsKernel returns the limit that a command exceeds by what the kernel has for it. That the
// machine has many sockets, or a large kernel, is a ground to look, since other programs may have
// them.
func (w *watcher) exceedsKernel(list []process, now machineMemory) string {
	large := grown(w.begun.memory.kernel, grown(freeOfProcessors(), now.kernel)) > w.limits.Memory
	if !large && grown(w.begun.memory.sockets, now.sockets) <= maxSockets {
		return ""
	}
	var files openFiles
	var stores bool
	w.onMain(func() {
		files = w.threads.openFilesOf(list)
		most := w.limits.Memory / shareOfStores
		stores = large && storesOf(list, files.sockets, most) > most
	})
	switch {
	case len(files.sockets) > maxSockets || files.unseen && grown(w.begun.memory.sockets, now.sockets) > maxSockets:
		return fmt.Sprintf("it has more than %d sockets", maxSockets)
	case large && (files.unseen || len(files.sockets)+files.pipes > manyPipes || stores):
		return fmt.Sprintf("the kernel has more than %s of memory for it", size(w.limits.Memory))
	}
	return ""
}

// exceedsTransport returns the limit of buffers of TCP and UDP if the command exceeds it. The kernel bounds
// them for the machine: beyond that, connections of all programs stand still. They are added up when those
// of the machine have grown by as much, and at most a sixth of the time. Where the kernel does not say
// which socket has them, or files are kept from being seen, a command with sockets has them.
func (w *watcher) exceedsTransport(list []process, now machineMemory) string {
	if grown(w.begun.memory.transport, now.transport) <= now.transportMost || time.Now().Before(w.transportNext) {
		return ""
	}
	began, sum, unseen := time.Now(), uint64(0), false
	w.onMain(func() {
		files := w.threads.openFilesOf(list)
		held, known := transportBuffersOf(files.sockets)
		sum, unseen = held, files.unseen || !known && len(files.sockets) > 0
	})
	w.transportNext = time.Now().Add(5 * time.Since(began))
	if sum > now.transportMost || unseen {
		return fmt.Sprintf("its connections have more than %s in buffers", size(now.transportMost))
	}
	return ""
}

// processorTime returns the time that this thread has had a processor.
func processorTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) // each kernel has it
	return time.Duration(now.Nano())
}

// epollWatchSize is what the kernel has for one watch of epoll, in bytes, at least.
const epollWatchSize = 128

// exceedsEpoll returns the limit of epoll watches if the command exceeds it. The kernel counts them by
// user, for the host too, and bounds them for no namespace. They are counted when its objects have grown by
// as much as the permitted ones take, and at most a sixth of the time. That is time of a processor: on a
// busy machine a count takes long, and a pause by the clock would leave the command time to take them all.
// A command that keeps files from being seen has them when the objects have grown by twice as much.
func (w *watcher) exceedsEpoll(list []process, slab uint64) string {
	if w.epollMost == 0 || slab < w.epollMost*epollWatchSize || time.Now().Before(w.epollNext) {
		return ""
	}
	var n uint64
	var unseen bool
	var used time.Duration
	w.onMain(func() {
		before := processorTime()
		n = epollWatches(list, w.epollMost)
		unseen = slab > 2*w.epollMost*epollWatchSize && w.threads.openFilesOf(list).unseen
		used = processorTime() - before
	})
	w.epollNext = time.Now().Add(5 * used) // a program makes 200,000 a second
	if n > w.epollMost || unseen {
		return fmt.Sprintf("it has more than %d watches of epoll", w.epollMost)
	}
	return ""
}

// exceedsFiles returns the limit of open files if the command exceeds it. Those of the machine are bounded
// for all users, so that the host could open none.
func (w *watcher) exceedsFiles(list []process) string {
	now, most := openFilesOfMachine(w.table)
	most /= shareOfFiles
	if grown(w.begun.files, now) <= most {
		return ""
	}
	dir, err := os.Open("/proc") // without a free one, no process was listed
	var files openFiles
	if err == nil {
		_ = dir.Close() // nothing was read
		w.onMain(func() { files = w.threads.openFilesOf(list) })
	}
	if err != nil || files.unseen || uint64(files.count) > most {
		return fmt.Sprintf("its processes have more than %d open files", most)
	}
	return ""
}

// exactMemory returns the memory of processes and what they have made, where the shared memory of
// the machine has grown so much. It may stop when that is more than limit.
func (w *watcher) exactMemory(list []process, limit, grownShared uint64) uint64 {
	sum, mapped, unseen := uint64(0), uint64(0), false
	for _, process := range list {
		m, ok := process.memory()
		if !ok { // it is a program that cannot be read
			m.anonymous, unseen = process.private, true
		}
		sum, mapped = sum+m.anonymous+m.pageTables, mapped+m.shared
		if sum+mapped > limit {
			return sum + mapped
		}
	}
	files := w.threads.openFilesOf(list)
	sum += buffersOf(files.sockets)
	// A file of memory may be mapped as well.
	held := files.deleted[memoryDevice()] + temporaryFiles() + sharedSegments()
	sum += semaphores()
	shared := max(mapped, held, min(grownShared, mapped+held))
	// Programs map memory that is not open for good reasons, so it is no hiding until there is more than the limit.
	if unseen || files.unseen || grownShared > limit && sum+shared <= limit && mapsMemory(list, files) {
		shared = max(shared, grownShared)
	}
	return sum + shared
}

func size(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// A process is one of the command.
type process struct {
	id      int
	dir     string // in /proc: of the process, or of a thread of it that has not ended
	tasks   string // in /proc: the folder of its threads
	private uint64 // bytes of memory that no file has
	threads uint64
	session int
}

// processes returns those of /proc, which is that of the PID namespace, without this one.
func processes() (list []process) {
	for _, name := range names("/proc") {
		if name[0] < '0' || name[0] > '9' || name == "1" {
			continue
		}
		id, _ := strconv.Atoi(name) // the kernel wrote it
		process := process{id: id, dir: "/proc/" + name, tasks: "/proc/" + name + "/task/"}
		var s unix.Stat_t
		if unix.Stat(process.tasks, &s) != nil {
			continue // it has ended
		}
		process.threads = uint64(s.Nlink) - min(2, uint64(s.Nlink))
		process.session, _ = unix.Getsid(id) // 0 if it has ended
		var has bool
		if process.private, has = privateMemory(process.dir); !has && process.threads > 1 {
			// Its first thread has ended, and shows nothing of the process.
			for _, thread := range names(process.tasks) {
				dir := process.tasks + thread
				if process.private, has = privateMemory(dir); has {
					process.dir = dir
					break
				}
			}
		}
		list = append(list, process)
	}
	return list
}

// isEnding reports whether a process ends or has ended: no thread of it has memory. The kernel then lets only
// the superuser read which files it has, and takes these from it next.
func (p process) isEnding() bool {
	return !slices.ContainsFunc(names(p.tasks), func(thread string) bool {
		_, has := privateMemory(p.tasks + thread)
		return has
	})
}

// privateMemory returns the memory of a process or thread that no file has. It has none at all
// when it has ended.
func privateMemory(dir string) (n uint64, has bool) {
	var buffer [128]byte
	f := bytes.Fields(readInto(buffer[:], dir+"/statm"))
	if len(f) < 3 || len(f[0]) == 1 && f[0][0] == '0' {
		return 0, false
	}
	return grown(number(f[2]), number(f[1])) * uint64(os.Getpagesize()), true
}

// number returns a number that the kernel wrote.
func number(text []byte) (n uint64) {
	for _, c := range text {
		n = n*10 + uint64(c-'0')
	}
	return n
}

// readInto reads a file of /proc with as few system calls as possible: there may be thousands.
func readInto(buffer []byte, path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:n]
}

// names returns what is in a folder of /proc.
func names(path string) []string {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	list, _ := dir.Readdirnames(-1) // what was read counts
	return list
}

// A processMemory is what a process has, in bytes, and of what it shares its part.
type processMemory struct{ anonymous, shared, pageTables uint64 }

// memory returns the exact memory of a process. That fails for a process that keeps others from
// reading it.
func (p process) memory() (m processMemory, ok bool) {
	for _, name := range []string{"/status", "/smaps_rollup"} {
		text, err := os.ReadFile(p.dir + name)
		if err != nil {
			return m, hasEnded(err)
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			switch name {
			case "Pss_Anon":
				m.anonymous = kibibytes(value)
			case "Pss_Shmem":
				m.shared = kibibytes(value)
			case "VmPTE":
				m.pageTables = kibibytes(value)
			}
		}
	}
	return m, true
}

// hasEnded reports whether a file of a process is missing because the process is.
func hasEnded(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }
