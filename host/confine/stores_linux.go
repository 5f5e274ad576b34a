package confine

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What the kernel has for a command, in bytes: rough bounds, since they only decide whose a large kernel is.
const (
	perThread    = 32 << 10
	perMapping   = 1 << 10
	perFilter    = 256 << 10 // of system calls, of 4,096 instructions
	perLock      = 256       // of files
	perMessage   = 64        // of System V, besides its text
	perSemaphore = 64
	perUndo      = 2 // of each semaphore, for each thread that would undo what it did
)

// storesOf returns about how much the kernel has for processes in what no limit bounds and few programs have much of.
// Beyond most it stops.
func storesOf(list []process, sockets map[uint64]bool, most uint64) (sum uint64) {
	own, threads := filtersOf("/proc/self"), uint64(0)
	for _, process := range list {
		threads += process.threads
		for _, thread := range names(process.tasks) {
			sum += perFilter * grown(own, filtersOf(process.tasks+thread))
		}
	}
	sum += perThread*threads + semaphores() + semaphores()/perSemaphore*perUndo*threads + messages() + waitingConnections(sockets)
	sum += perLock * linesOf("/proc/locks", grown(sum, most)/perLock)
	for _, process := range list {
		sum += perMapping * linesOf(process.dir+"/maps", grown(sum, most)/perMapping)
	}
	return sum
}

// linesOf returns how many lines a file of /proc has. Beyond most it stops.
func linesOf(path string, most uint64) (n uint64) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0 // it has ended, or openFilesOf has not seen its files either
	}
	defer unix.Close(fd)
	for buffer := make([]byte, 64<<10); n <= most; {
		size, err := unix.Read(fd, buffer)
		if err != nil || size <= 0 {
			break
		}
		n += uint64(bytes.Count(buffer[:size], []byte{'\n'}))
	}
	return n
}

// filtersOf returns how many filters of system calls a thread has, those of its launcher among them.
func filtersOf(dir string) uint64 {
	var buffer [4096]byte
	for line := range bytes.Lines(readInto(buffer[:], dir+"/status")) {
		if count, found := bytes.CutPrefix(line, []byte("Seccomp_filters:")); found {
			return number(bytes.TrimSpace(count))
		}
	}
	return 0
}

// waitingConnections returns how much may be in connections that listening Unix sockets have not accepted. They are no file
// of a process, nor is the other end if it was closed.
func waitingConnections(sockets map[uint64]bool) (sum uint64) {
	const (
		queues    = 4
		listening = 10
	)
	text, err := os.ReadFile("/proc/sys/net/core/wmem_max")
	if err != nil || len(sockets) == 0 {
		return 0
	}
	each := 2 * number(bytes.TrimSpace(text)) // see SO_SNDBUF in socket(7)
	unixSockets(sockets, 1<<queues, func(state byte, list []byte) {
		attributes(list, func(kind uint16, value []byte) {
			if kind == queues && state == listening {
				sum += each * allocated(value, 0)
			}
		})
	})
	return sum
}

// messages returns the bytes of the System V messages of the IPC namespace.
func messages() (sum uint64) {
	const fieldBytes, fieldCount = 3, 4
	eachOfNamespace("msg", func(f []string) { sum += field(f, fieldBytes) + perMessage*field(f, fieldCount) })
	return sum
}

// semaphores returns the bytes of the System V semaphores of the IPC namespace.
func semaphores() (sum uint64) {
	const fieldCount = 3
	eachOfNamespace("sem", func(f []string) { sum += perSemaphore * field(f, fieldCount) })
	return sum
}

// sharedSegments returns the bytes of the System V segments of the IPC namespace.
func sharedSegments() (sum uint64) {
	const fieldResident = 14
	eachOfNamespace("shm", func(f []string) { sum += field(f, fieldResident) })
	return sum
}

// eachOfNamespace calls each with the fields of what the IPC namespace has of a kind.
func eachOfNamespace(kind string, each func(fields []string)) {
	text, err := os.ReadFile("/proc/sysvipc/" + kind)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		each(strings.Fields(line))
	}
}

// field returns a field that is a number. In the first line they are names, which count 0.
func field(f []string, i int) uint64 {
	if i >= len(f) {
		return 0
	}
	n, _ := strconv.ParseUint(f[i], 10, 64)
	return n
}
