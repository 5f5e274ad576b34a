package confine

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of more open files the memory and disk are not added up, but taken from what the machine has lost.
const maxOpenFiles = 100_000

// openFiles are what processes have open. The filter of system calls keeps threads from having
// files of their own.
type openFiles struct {
	count   int               // entries of the tables of processes, of which several may be one file
	deleted map[uint64]uint64 // bytes of files without a name, by device
	memory  map[uint64]bool   // inodes of those that are memory
	sockets map[uint64]bool   // inodes
	pipes   int               // pipes
	unseen  bool              // there may be others: of a process that cannot be read, on their way through a socket, or closed during a call
}

// openFilesOf returns what the processes of the command have open.
func (r *runnable) openFilesOf(list []process) openFiles {
	f := openFiles{deleted: map[uint64]uint64{}, memory: map[uint64]bool{}, sockets: map[uint64]bool{}}
	r.now = map[string]runnableThread{}
	type inode struct{ device, number uint64 }
	seen := map[inode]bool{}
	for _, process := range list {
		dir, err := os.Open(process.dir + "/fd")
		if err != nil {
			f.unseen = f.unseen || !hasEnded(err) && !process.isEnding()
			continue
		}
		list, _ := dir.Readdirnames(maxOpenFiles) // what was read counts
		dir.Close()
		if f.count += len(list); f.count >= maxOpenFiles {
			f.unseen = true
			return f
		}
		closed := r.usesClosed(process, list) // of each process, to see its threads
		f.unseen = f.unseen || closed
		// The program that it executes is in no table, and need not be mapped. It is looked at also because the superuser
		// may list the files of a process that others may not look into, and sees no more of them: it may have none in its
		// table, but in a call.
		for _, name := range append(list, "../exe") {
			var s unix.Stat_t
			if err := unix.Stat(process.dir+"/fd/"+name, &s); err != nil { // closed, if it is missing
				f.unseen = f.unseen || !hasEnded(err) && !process.isEnding()
				continue
			}
			id, kind := inode{s.Dev, s.Ino}, s.Mode&unix.S_IFMT
			if seen[id] || kind == unix.S_IFREG && s.Nlink > 0 || kind != unix.S_IFREG && kind != unix.S_IFSOCK && kind != unix.S_IFIFO {
				continue
			}
			seen[id] = true
			switch kind {
			case unix.S_IFREG:
				f.deleted[s.Dev] += uint64(s.Blocks) * 512
				if s.Dev == memoryDevice() {
					f.memory[s.Ino] = true
				}
				continue
			case unix.S_IFIFO:
				f.pipes++
				continue
			}
			f.sockets[s.Ino] = true
			f.unseen = f.unseen || hasFilesWaiting(process.dir+"/fdinfo/"+name)
		}
	}
	r.before = r.now
	return f
}

// fileArguments returns which arguments of a system call are files, if it may wait. A file that
// another thread closes meanwhile is kept by the call, and is in no table.
func fileArguments(call string) []int {
	number, err := strconv.Atoi(call)
	if err != nil {
		return nil
	}
	switch number {
	case unix.SYS_SENDFILE, unix.SYS_TEE:
		return []int{0, 1}
	case unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE:
		return []int{0, 2}
	case unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_PREADV, unix.SYS_PWRITEV,
		unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_FLOCK, unix.SYS_FCNTL, unix.SYS_IOCTL, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE,
		unix.SYS_SYNCFS, unix.SYS_FALLOCATE, unix.SYS_FTRUNCATE, unix.SYS_GETDENTS64, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG,
		unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_CONNECT, unix.SYS_EPOLL_PWAIT,
		unix.SYS_EPOLL_PWAIT2:
		return []int{0}
	}
	if slices.Contains(fileCallsHere, number) {
		return []int{0}
	}
	return nil
}

// hidesFiles reports whether a system call may use files that are named in memory alone: those of a message, or
// those that it polls.
func hidesFiles(call []string) bool {
	number, err := strconv.Atoi(call[0])
	if err != nil {
		return false
	}
	place, polls := pollsHere[number]
	switch number {
	case unix.SYS_SENDMSG, unix.SYS_SENDMMSG:
		return true
	case unix.SYS_PPOLL:
		place, polls = 1, true
	case unix.SYS_PSELECT6:
		place, polls = 0, true
	}
	return polls && call[1+place] != "0x0" // how many files
}

// longestUnseen is how long a thread may be without processor time in its program until it counts as one in a call.
const longestUnseen = 2 * time.Second

// runnable remembers threads between looks. The kernel does not say in which call a thread is that waits for no event. It
// may be in one for minutes, with files that another thread has closed: one of little priority beside busy ones is hardly
// executed. Meanwhile its program has no processor time. Only the main thread uses it.
type runnable struct {
	before, now map[string]runnableThread // by the folder in /proc
}

// A runnableThread is one that the last look has found runnable.
type runnableThread struct {
	started, inProgram string // when, and its processor time outside of calls, as the kernel writes them
	since              time.Time
}

// isInCall remembers a thread, if it is runnable, and reports whether it has been without processor time in its program for
// so long that it counts as in a call.
func (r *runnable) isInCall(dir string) bool {
	const state, inProgram, started = 0, 11, 19 // behind the name
	var buffer [1024]byte
	text := readInto(buffer[:], dir+"/stat")
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) <= started || f[state] != "R" {
		return false
	}
	thread := runnableThread{f[started], f[inProgram], time.Now()}
	if last, found := r.before[dir]; found && last.started == thread.started && last.inProgram == thread.inProgram {
		thread.since = last.since
	}
	r.now[dir] = thread
	return time.Since(thread.since) >= longestUnseen
}

// usesClosed reports whether a thread of a process is in a call with a file that is not in its table any more, or may be:
// where the call or its files are not known, another thread may have closed them.
func (r *runnable) usesClosed(p process, table []string) (uses bool) {
	var buffer, again [256]byte
	threads := names(p.tasks)
	several := func(thread string) bool { return len(threads) > 1 || p.hadThreads(thread) }
	for _, thread := range threads {
		path := p.tasks + thread + "/syscall"
		text := readInto(buffer[:], path)
		call := strings.Fields(string(text))
		if len(call) == 1 && r.isInCall(p.tasks+thread) && several(thread) {
			uses = true
		}
		if len(call) < 4 || uses { // it is not waiting in a call, or has ended
			continue
		}
		waits := func() bool { return bytes.Equal(text, readInto(again[:], path)) }
		if hidesFiles(call) && several(thread) && waits() {
			uses = true
		}
		for _, i := range fileArguments(call[0]) {
			n, err := strconv.ParseUint(strings.TrimPrefix(call[1+i], "0x"), 16, 32)
			fd := strconv.FormatUint(n, 10)
			if err != nil || slices.Contains(table, fd) {
				continue
			}
			// It may have been opened since the table was read, or closed after the call. A second call may look
			// like the first: programs read one library after the other.
			closed := func() bool { _, err := os.Lstat(p.dir + "/fd/" + fd); return err != nil }
			if closed() && waits() && closed() {
				uses = true
			}
		}
	}
	return uses
}

// hadThreads reports whether a process with one thread has had others, which may have closed files: the processor time of a
// process includes theirs.
func (p process) hadThreads(thread string) bool {
	const scheduled = 2 // CPUCLOCK_SCHED: of all threads, in nanoseconds
	var all unix.Timespec
	if unix.ClockGettime(int32(^p.id<<3|scheduled), &all) != nil {
		return false // it has ended
	}
	var buffer [128]byte
	own, _, _ := bytes.Cut(readInto(buffer[:], p.tasks+thread+"/schedstat"), []byte(" "))
	n := number(own) // 0 where the kernel does not say
	return n > 0 && uint64(all.Nano()) > n
}

// hasFilesWaiting reports whether a socket has files that its owner has not received.
func hasFilesWaiting(info string) bool {
	var buffer [512]byte
	for line := range strings.Lines(string(readInto(buffer[:], info))) {
		if count, found := strings.CutPrefix(line, "scm_fds:"); found {
			return strings.TrimSpace(count) != "0"
		}
	}
	return false
}

// shareOfFiles is the part of the open files of the machine that one command may have.
const shareOfFiles = 8

// openFilesOfMachine returns how many files the machine has open, and how many it may have.
func openFilesOfMachine(table *os.File) (now, most uint64) {
	var buffer [128]byte
	if table != nil {
		n, _ := table.ReadAt(buffer[:], 0) // what was read counts
		if f := bytes.Fields(buffer[:n]); len(f) == 3 {
			return number(f[0]), number(f[2])
		}
	}
	return 0, 0
}

// epollWatches counts the watches of epoll that processes have, and stops beyond most. An epoll instance
// that several processes or descriptors share counts for each: nothing shows that it is the same one. Of those
// that cannot be read it counts none: openFilesOf says that there may be some.
func epollWatches(list []process, most uint64) (n uint64) {
	buffer := make([]byte, 64<<10)
	for _, process := range list {
		for _, name := range names(process.dir + "/fd") {
			if target, err := os.Readlink(process.dir + "/fd/" + name); err != nil || target != "anon_inode:[eventpoll]" {
				continue
			}
			fd, err := unix.Open(process.dir+"/fdinfo/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				continue // closed
			}
			for n <= most { // the kernel gives whole lines
				size, err := unix.Read(fd, buffer)
				if err != nil || size <= 0 {
					break
				}
				n += uint64(bytes.Count(buffer[:size], []byte("tfd:")))
			}
			_ = unix.Close(fd)
			if n > most {
				return n
			}
		}
	}
	return n
}

// epollShare returns how many watches of epoll one command may have, 0 if the kernel does not say.
var epollShare = func() uint64 {
	text, err := os.ReadFile("/proc/sys/fs/epoll/max_user_watches")
	if err != nil {
		return 0
	}
	return number(bytes.TrimSpace(text)) / shareOfWatches
}

// memoryDevice returns the device of memory without a name, such as that of memfd_create.
var memoryDevice = sync.OnceValue(func() uint64 {
	fd, err := unix.MemfdCreate("device", unix.MFD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil {
		return 0
	}
	return s.Dev
})

// memoryDevices are the devices of files that are in memory.
func memoryDevices() []uint64 {
	list := []uint64{memoryDevice()}
	for _, dir := range temporaryFolders {
		var s unix.Stat_t
		if unix.Stat(dir, &s) == nil {
			list = append(list, s.Dev)
		}
	}
	return list
}

// temporaryFolders are the command's own file systems of memory.
var temporaryFolders = []string{"/tmp", "/dev/shm"}

// temporaryFiles returns the bytes in the command's own file systems of memory.
func temporaryFiles() (sum uint64) {
	for _, dir := range temporaryFolders {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil {
			sum += (s.Blocks - s.Bfree) * uint64(s.Bsize)
		}
	}
	return sum
}

// Numbers of sock_diag.h, unix_diag.h and inet_diag.h.
const (
	diagByFamily = 20
	// Places in the list of what the kernel has allocated for a socket.
	memoryReceived, memorySent, memoryReserved, memoryQueued = 0, 2, 4, 5
)

// socketMessages requests a list of sockets from the kernel, and calls each with the messages of it. It
// reports whether the list came to its end.
func socketMessages(body []byte, each func(data []byte)) bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	request := append(make([]byte, unix.SizeofNlMsghdr), body...)
	header := (*unix.NlMsghdr)(unsafe.Pointer(&request[0]))
	header.Len, header.Type, header.Flags = uint32(len(request)), diagByFamily, unix.NLM_F_REQUEST|unix.NLM_F_DUMP
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false
	}
	for buffer := make([]byte, 64<<10); ; {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err == unix.EINTR {
			continue
		}
		messages, parseErr := syscall.ParseNetlinkMessage(buffer[:max(n, 0)])
		if err != nil || parseErr != nil {
			return false
		}
		for _, m := range messages {
			if m.Header.Type != diagByFamily { // the end, or this kernel has no such messages
				return m.Header.Type == unix.NLMSG_DONE
			}
			each(m.Data)
		}
	}
}

// attributes calls each with the attributes of a message of the kernel.
func attributes(data []byte, each func(kind uint16, value []byte)) {
	for len(data) >= unix.SizeofRtAttr {
		length, kind := int(binary.NativeEndian.Uint16(data)), binary.NativeEndian.Uint16(data[2:])
		if length < unix.SizeofRtAttr || length > len(data) {
			return
		}
		each(kind, data[unix.SizeofRtAttr:length])
		data = data[min((length+3)&^3, len(data)):]
	}
}

// allocated returns a number of the list of what the kernel has allocated for a socket.
func allocated(value []byte, place int) uint64 {
	if len(value) < 4*place+4 {
		return 0
	}
	return uint64(binary.NativeEndian.Uint32(value[4*place:]))
}

// unixSockets calls each with the state and the attributes of Unix sockets, of those that are shown.
func unixSockets(sockets map[uint64]bool, show uint32, each func(state byte, list []byte)) {
	const sizeRequest, sizeMessage, placeState = 24, 16, 2
	body := make([]byte, sizeRequest)
	body[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(body[4:], ^uint32(0)) // in all states
	binary.NativeEndian.PutUint32(body[12:], show)
	socketMessages(body, func(data []byte) {
		if len(data) >= sizeMessage && sockets[uint64(binary.NativeEndian.Uint32(data[4:]))] {
			each(data[placeState], data[sizeMessage:])
		}
	})
}

// buffersOf returns the bytes that Unix sockets hold, which are in no other number of the kernel.
func buffersOf(sockets map[uint64]bool) (sum uint64) {
	if len(sockets) == 0 {
		return 0
	}
	const peer, queues, memory = 2, 4, 5
	unixSockets(sockets, 1<<peer|1<<queues|1<<memory, func(_ byte, list []byte) {
		var received, sent uint64
		connected := false
		attributes(list, func(kind uint16, value []byte) {
			switch kind {
			case peer:
				connected = allocated(value, 0) != 0 // else the other one is closed
			case queues:
				received = allocated(value, 0)
			case memory:
				sent = allocated(value, memorySent)
			}
		})
		if sum += sent; !connected { // else it is what the other one has sent
			sum += received
		}
	})
	return sum
}

// An endpoint is the port and address of one end of a connection, as the kernel lists it. The address may be all.
type endpoint [2 + 16]byte

// anyAddress returns the endpoint with the port alone.
func (e endpoint) anyAddress() endpoint { return endpoint{e[0], e[1]} }

// transportBuffersOf returns the bytes that TCP and UDP sockets hold, and whether the kernel says so. Connections that
// a listener of the command has not accepted belong to it, though they are no file of a process. So do all connections
// that were closed before their data was sent: nothing says whose they were, and the kernel keeps what they hold.
func transportBuffersOf(sockets map[uint64]bool) (sum uint64, known bool) {
	const (
		memory                   = 7
		sizeRequest, sizeMessage = 56, 72
		placeState, listening    = 1, 10
		finWait1, lastAck        = 4, 9
		closing                  = 11
		placePort, placeAddress  = 4, 8
		placeInode               = 68
	)
	known = true
	listeners, withoutFile := map[endpoint]bool{}, map[endpoint]uint64{}
	for _, protocol := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
			body := make([]byte, sizeRequest)
			body[0], body[1], body[2] = family, protocol, 1<<(memory-1)
			binary.NativeEndian.PutUint32(body[4:], ^uint32(0)) // in all states
			known = socketMessages(body, func(data []byte) {
				if len(data) < sizeMessage {
					return
				}
				state := data[placeState]
				orphan := protocol == unix.IPPROTO_TCP && (state == finWait1 || state == lastAck || state == closing)
				inode := uint64(binary.NativeEndian.Uint32(data[placeInode:]))
				if inode != 0 && !sockets[inode] {
					return
				}
				var local endpoint
				copy(local[:2], data[placePort:])
				copy(local[2:], data[placeAddress:])
				if inode != 0 && state == listening {
					listeners[local] = true
				}
				attributes(data[sizeMessage:], func(kind uint16, value []byte) {
					if kind != memory {
						return
					}
					held := allocated(value, memoryReceived) + allocated(value, memoryReserved) + allocated(value, memoryQueued)
					if inode != 0 || orphan {
						sum += held
					} else {
						withoutFile[local] += held
					}
				})
			}) && known
		}
	}
	for local, held := range withoutFile {
		if listeners[local] || listeners[local.anyAddress()] {
			sum += held
		}
	}
	return sum, known
}

// A disk is a file system of folders that a command writes.
type disk struct {
	dir  string
	free uint64 // bytes when the command began

	inodes, allInodes uint64 // free ones at that time, and all; 0 where a file system makes them as needed
}

// inodesLeft returns how many free inodes a command has to leave: without one the host writes nothing.
func (d disk) inodesLeft() uint64 { return min(d.allInodes/shareLeft, maxLeft) }

// disksOf returns the file systems of folders.
func disksOf(folders []string) (list []disk) {
	var known []unix.Fsid
	for _, dir := range folders {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) != nil || slices.Contains(known, s.Fsid) {
			continue
		}
		known = append(known, s.Fsid)
		list = append(list, diskOf(dir))
	}
	return list
}

// diskOf returns the file system of a folder, with nothing free if it cannot be read.
func diskOf(dir string) disk {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return disk{dir: dir}
	}
	return disk{dir: dir, free: s.Bavail * uint64(s.Bsize), inodes: s.Ffree, allInodes: s.Files}
}
