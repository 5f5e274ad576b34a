package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pause is how often limits of the whole command are looked at.
const pause = 100 * time.Millisecond

// longestLook is how long the exact memory of processes may take to find out. A process that is
// not executed while it allocates memory keeps others from reading how much it has.
const longestLook = 300 * time.Millisecond

// longestWait is how long processes may keep a look waiting, for locks of their memory, until what the machine has more of
// counts as theirs. A process of little priority that is not executed may hold such a lock for minutes.
const longestWait = 2 * time.Second

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
	anonymous, shared, pageTables, available, total uint64

	objects uint64 // of the kernel that it cannot reclaim, and what it allocates for itself in other ways than by pages
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
	var elsewhere uint64
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "MemTotal":
			m.total = kibibytes(value)
		case "MemFree", "Buffers", "Cached", "SwapCached", "SReclaimable", "Hugetlb", "Zswap":
			elsewhere += kibibytes(value)
		case "AnonPages":
			m.anonymous = kibibytes(value)
			elsewhere += m.anonymous
		case "SUnreclaim":
			m.slab = kibibytes(value)
			m.objects += m.slab
		case "VmallocUsed", "Percpu":
			m.objects += kibibytes(value)
		case "Shmem":
			m.shared = kibibytes(value)
		case "PageTables":
			m.pageTables = kibibytes(value)
		case "MemAvailable":
			m.available = kibibytes(value)
		}
	}
	m.kernel = grown(elsewhere, m.total)
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
	m.transportMost = max(m.total/128, leastTransport)
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
	events   *os.File    // of the cgroup of the command, which bounds its memory; nil for none
	closer   *closerLook // that goes on; nil for none
	next     time.Time   // of a closer look at memory without a ground

	epollMost uint64    // watches of epoll that the command may have; 0 for no limit
	epollNext time.Time // of the next count of them

	transportNext time.Time // of the next sum of buffers of TCP and UDP
	table         *os.File  // with the number of open files of the machine; nil for no limit

	objectsSince time.Time // when the objects of the kernel were found to be more than the command may have
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
// Only where a command keeps memory from being seen is it taken for the command's. This look goes on beside
// a closer one.
func (w *watcher) exceeds(due time.Time) string {
	list := processes()
	private, threads, sessions := uint64(0), uint64(0), map[int]bool{}
	for _, process := range list {
		private += process.private
		threads += process.threads
		sessions[process.session] = true
	}
	switch {
	case w.events != nil && hasEndedProcesses(w.events):
		return memoryExceeded(w.limits.Memory)
	case threads > w.limits.Processes:
		return fmt.Sprintf("it has more than %d processes and threads", w.limits.Processes)
	case len(sessions) > maxSessions:
		return fmt.Sprintf("it has more than %d sessions", maxSessions)
	}
	now := memoryOfMachine()
	if exceeded := w.exceedsObjects(now); exceeded != "" {
		return exceeded
	}
	if w.closer == nil {
		c := &closerLook{limit: make(chan string, 1)}
		w.closer = c
		go w.onMain(func() {
			c.mayWait.Store(int64(w.waited() + longestWait))
			c.limit <- w.looksCloser(list, private, now)
		})
	}
	// A command that keeps its memory from being read, or the launcher from the processors, is taken
	// by what its processes and the machine say.
	memory := min(private, grown(w.begun.memory.anonymous, now.anonymous))
	if most := w.closer.mayWait.Load(); most > 0 && w.waited() > time.Duration(most) {
		memory += grown(w.begun.memory.shared, now.shared)
	}
	if w.events != nil {
		memory = 0 // the kernel counts it
	}
	rest := pause
	if memory > w.limits.Memory {
		rest = longestLook - time.Since(due)
	}
	select {
	case limit := <-w.closer.limit:
		w.closer = nil
		return limit
	case <-time.After(rest):
	}
	if memory > w.limits.Memory {
		return memoryExceeded(w.limits.Memory)
	}
	return ""
}

// A closerLook is one on the main thread, which a command can make last.
type closerLook struct {
	limit   chan string  // that is exceeded, or "" at its end
	mayWait atomic.Int64 // what waited may return until the command keeps the look from its end; 0 before it begins
}

// waited returns how long the main thread has waited for other than a processor, 0 if the kernel does not say.
func (w *watcher) waited() time.Duration {
	var buffer [128]byte
	f := bytes.Fields(readInto(buffer[:], "/proc/1/schedstat"))
	if len(f) < 2 {
		return 0
	}
	return time.Since(w.begun.now) - time.Duration(number(f[0])+number(f[1]))
}

// looksCloser returns the limit that the command exceeds by what only the main thread can read.
func (w *watcher) looksCloser(list []process, private uint64, now machineMemory) string {
	before, limit := w.begun.memory, w.limits.Memory
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
	if exceeded := w.exceedsTransport(list, now); exceeded != "" || w.events != nil {
		return exceeded
	}
	shared := grown(before.shared, now.shared)
	atOnce := private+shared+grown(before.pageTables, now.pageTables) > limit || grown(now.available, before.available) > limit
	if !atOnce && time.Now().Before(w.next) {
		return ""
	}
	began := time.Now()
	memory := w.exactMemory(list, grown(before.anonymous, now.anonymous), shared)
	w.next = time.Now().Add(20 * time.Since(began))
	if memory > limit {
		return memoryExceeded(limit)
	}
	return ""
}

// memoryExceeded returns the limit of memory in words.
func memoryExceeded(limit uint64) string {
	return fmt.Sprintf("its processes have more than %s of memory", size(limit))
}

// exceedsKernel returns the limit that a command exceeds by what the kernel has for it. That the
// machine has many sockets, or a large kernel, is a ground to look, since other programs may have
// them.
func (w *watcher) exceedsKernel(list []process, now machineMemory) string {
	large := w.events == nil && grown(w.begun.memory.kernel, grown(freeOfProcessors(), now.kernel)) > w.limits.Memory
	if !large && grown(w.begun.memory.sockets, now.sockets) <= maxSockets {
		return ""
	}
	files := w.threads.openFilesOf(list)
	most := w.limits.Memory / shareOfStores
	stores := large && storesOf(list, files.sockets, most) > most
	switch {
	case len(files.sockets) > maxSockets || files.unseen && grown(w.begun.memory.sockets, now.sockets) > maxSockets:
		return fmt.Sprintf("it has more than %d sockets", maxSockets)
	case large && (files.unseen || len(files.sockets)+files.pipes > manyPipes || stores):
		return fmt.Sprintf("the kernel has more than %s of memory for it", size(w.limits.Memory))
	}
	return ""
}

// longestUnowned is how long the kernel may have more for no command than one may have. Another command that has it is ended
// at once, and the kernel then takes seconds to free it.
const longestUnowned = 30 * time.Second

// shareOfObjects is the part of the memory of the machine by which its kernel may grow for other programs.
const shareOfObjects = 8

// exceedsObjects returns the limit of memory if the kernel has grown by more than that since the command began, by what no count
// of the command's names. Then it counts for each command that was there before: at once if memory is short, when the kernel would
// end commands too.
func (w *watcher) exceedsObjects(now machineMemory) string {
	total := w.begun.memory.total
	most := max(min(w.limits.Memory, total/4), total/shareOfObjects)
	switch {
	case grown(w.begun.memory.objects, now.objects) <= most:
		w.objectsSince = time.Time{}
		return ""
	case w.objectsSince.IsZero():
		w.objectsSince = time.Now()
	}
	if time.Since(w.objectsSince) < longestUnowned && now.available > now.total/shareOfObjects {
		return ""
	}
	return fmt.Sprintf("the kernel has more than %s that it cannot reclaim and did not have before, for this command or another program that runs beside it", size(most))
}

// exceedsTransport returns the limit of buffers of TCP and UDP if the command exceeds it. The kernel bounds
// them for the machine: beyond that, connections of all programs stand still. They are added up when those
// of the machine have grown by as much, and at most a sixth of the time. Where the kernel does not say
// which socket has them, or files are kept from being seen, a command with sockets has them.
func (w *watcher) exceedsTransport(list []process, now machineMemory) string {
	if grown(w.begun.memory.transport, now.transport) <= now.transportMost || time.Now().Before(w.transportNext) {
		return ""
	}
	began := time.Now()
	files := w.threads.openFilesOf(list)
	sum, known := transportBuffersOf(files.sockets)
	unseen := files.unseen || !known && len(files.sockets) > 0
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
	before := processorTime()
	n := epollWatches(list, w.epollMost)
	unseen := slab > 2*w.epollMost*epollWatchSize && w.threads.openFilesOf(list).unseen
	w.epollNext = time.Now().Add(5 * (processorTime() - before)) // a program makes 200,000 a second
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
		files = w.threads.openFilesOf(list)
	}
	if err != nil || files.unseen || uint64(files.count) > most {
		return fmt.Sprintf("its processes have more than %d open files", most)
	}
	return ""
}

// maxTables bounds the page tables that one look reads, in bytes: each entry takes time. As many are those of 32 GiB.
const maxTables = 64 << 20

// exactMemory returns the memory of processes and what they have made, where memory without files and shared memory of the
// machine have grown so much. It may stop when that is more than the limit.
//
// What processes say of themselves counts memory that they share for each of them, and older kernels are not exact about it.
// Only where it may be much is their part of it read, which takes long for large page tables and waits for each process.
func (w *watcher) exactMemory(list []process, grownAnonymous, grownShared uint64) uint64 {
	limit, rough := w.limits.Memory, processMemory{}
	said := make([]processMemory, len(list))
	for i, process := range list {
		said[i] = process.says()
		rough.add(said[i])
	}
	files := w.threads.openFilesOf(list)
	sum := buffersOf(files.sockets) + semaphores()
	held := files.deleted[memoryDevice()] + temporaryFiles() + sharedSegments()
	unseen := files.unseen
	total := func(m processMemory) uint64 {
		// A file of memory may be mapped as well.
		shared := max(m.shared, held, min(grownShared, m.shared+held))
		if unseen {
			shared = max(shared, grownShared)
		}
		return sum + m.anonymous + m.pageTables + shared
	}
	result := total(rough)
	if result > limit/2 {
		exact, rest := processMemory{}, processMemory{}
		var large []process // that were counted
		for i, process := range list {
			m, tables := said[i], rest.pageTables+exact.pageTables+said[i].pageTables
			if tables > maxTables {
				rest.add(m)
				continue
			}
			if read, ok := process.memory(); ok {
				m.anonymous, m.shared = read.anonymous, read.shared
			} else { // it is a program that cannot be read
				unseen = true
			}
			if m.anonymous > limit/64 {
				if slices.ContainsFunc(large, process.hasMemoryOf) {
					continue
				}
				large = append(large, process)
			}
			if exact.add(m); exact.anonymous+exact.pageTables+exact.shared > limit {
				break
			}
		}
		rest.anonymous, rest.shared = min(rest.anonymous, grownAnonymous), min(rest.shared, grownShared)
		exact.add(rest)
		result = total(exact)
	}
	// Honest programs map memory that is not open, too: it counts only if there is more than the limit.
	if grownShared > limit && result <= limit && mapsMemory(list, files) {
		result = grownShared
	}
	return result
}

// hasMemoryOf reports whether two processes have one memory: a program that begins another has it together with the new
// process until that executes its own, also for as long as it opens files before. The kernel may not say so.
func (p process) hasMemoryOf(other process) bool {
	const kcmpVM = 1 // KCMP_VM
	order, _, err := unix.Syscall6(unix.SYS_KCMP, p.thread(), other.thread(), kcmpVM, 0, 0, 0)
	return err == 0 && order == 0
}

// thread returns the id of the thread in whose folder the process is seen. One that has ended has no memory.
func (p process) thread() uintptr {
	id, _ := strconv.Atoi(filepath.Base(p.dir)) // the kernel wrote it
	return uintptr(id)
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

// isEnding reports whether a process ends or has ended: all threads of it do. The kernel then lets only the superuser read
// which files it has, and takes these from it next. That it has no memory says nothing: another process that shares its
// memory may have unmapped all, and it keeps its files.
func (p process) isEnding() bool {
	const state, flags, exiting = 0, 6, 0x4 // places behind the name, and PF_EXITING
	var buffer [1024]byte
	return !slices.ContainsFunc(names(p.tasks), func(thread string) bool {
		text := readInto(buffer[:], p.tasks+thread+"/stat")
		f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(f) <= flags { // it has ended
			return false
		}
		return !bytes.ContainsAny(f[state], "XZ") && number(f[flags])&exiting == 0
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

// A processMemory is what a process has, in bytes.
type processMemory struct{ anonymous, shared, pageTables uint64 }

func (m *processMemory) add(other processMemory) {
	m.anonymous, m.shared, m.pageTables = m.anonymous+other.anonymous, m.shared+other.shared, m.pageTables+other.pageTables
}

// says returns what a process says that it has, without waiting for it. That of what it shares with others is the whole.
func (p process) says() (m processMemory) {
	p.numbers("/status", map[string]*uint64{"RssAnon": &m.anonymous, "RssShmem": &m.shared, "VmPTE": &m.pageTables})
	return m
}

// memory returns the exact memory of a process without its page tables: of what it shares, its part. That fails for a process
// that keeps others from reading it.
func (p process) memory() (m processMemory, ok bool) {
	ok = p.numbers("/smaps_rollup", map[string]*uint64{"Pss_Anon": &m.anonymous, "Pss_Shmem": &m.shared})
	return m, ok
}

// numbers reads numbers of a file of the process. It reports whether that was possible, or the process has ended.
func (p process) numbers(file string, to map[string]*uint64) bool {
	text, err := os.ReadFile(p.dir + file)
	if err != nil {
		return hasEnded(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if n := to[name]; n != nil {
			*n = kibibytes(value)
		}
	}
	return true
}

// hasEnded reports whether a file of a process is missing because the process is.
func hasEnded(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }
