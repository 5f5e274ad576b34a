package confine

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of more open files the memory and disk are not added up, but taken from what the machine has lost.
const maxOpenFiles = 100_000

// openFiles are what processes have open. The filter of system calls keeps threads from having
// files of their own.
type openFiles struct {
	deleted map[uint64]uint64 // bytes of files without a name, by device
	sockets map[uint64]bool   // inodes
	unseen  bool              // there may be others: of a process that cannot be read, or on their way through a socket
}

func openFilesOf(list []process) openFiles {
	f := openFiles{deleted: map[uint64]uint64{}, sockets: map[uint64]bool{}}
	type inode struct{ device, number uint64 }
	seen, count := map[inode]bool{}, 0
	for _, process := range list {
		dir, err := os.Open(process.dir + "/fd")
		if err != nil {
			f.unseen = f.unseen || !hasEnded(err)
			continue
		}
		list, _ := dir.Readdirnames(maxOpenFiles) // what was read counts
		dir.Close()
		if count += len(list); count >= maxOpenFiles {
			f.unseen = true
			return f
		}
		for _, name := range list {
			var s unix.Stat_t
			if unix.Stat(process.dir+"/fd/"+name, &s) != nil {
				continue // closed
			}
			id, kind := inode{s.Dev, s.Ino}, s.Mode&unix.S_IFMT
			if seen[id] || kind == unix.S_IFREG && s.Nlink > 0 || kind != unix.S_IFREG && kind != unix.S_IFSOCK {
				continue
			}
			seen[id] = true
			if kind == unix.S_IFREG {
				f.deleted[s.Dev] += uint64(s.Blocks) * 512
				continue
			}
			f.sockets[s.Ino] = true
			f.unseen = f.unseen || hasFilesWaiting(process.dir+"/fdinfo/"+name)
		}
	}
	return f
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

// temporaryFiles returns the bytes in the command's own file systems of memory.
func temporaryFiles() (sum uint64) {
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil {
			sum += (s.Blocks - s.Bfree) * uint64(s.Bsize)
		}
	}
	return sum
}

// sharedSegments returns the bytes of the System V segments of the IPC namespace.
func sharedSegments() (sum uint64) {
	const fieldResident = 14
	text, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > fieldResident {
			n, _ := strconv.ParseUint(f[fieldResident], 10, 64) // the first line has names
			sum += n
		}
	}
	return sum
}

// buffersOf returns the bytes that Unix sockets hold, which are in no other number of the kernel.
// It bounds those of other sockets itself.
func buffersOf(sockets map[uint64]bool) (sum uint64) {
	if len(sockets) == 0 {
		return 0
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	const ( // of unix_diag.h and sock_diag.h
		byFamily, showPeer, showQueues, showMemory = 20, 0x4, 0x10, 0x20
		peer, queues, memory                       = 2, 4, 5
		memorySent                                 = 2
		sizeRequest, sizeMessage                   = 24, 16
	)
	request := make([]byte, unix.SizeofNlMsghdr+sizeRequest)
	header := (*unix.NlMsghdr)(unsafe.Pointer(&request[0]))
	header.Len, header.Type, header.Flags = uint32(len(request)), byFamily, unix.NLM_F_REQUEST|unix.NLM_F_DUMP
	body := request[unix.SizeofNlMsghdr:]
	body[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(body[4:], ^uint32(0)) // in all states
	binary.NativeEndian.PutUint32(body[12:], showPeer|showQueues|showMemory)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0
	}
	for buffer := make([]byte, 64<<10); ; {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err == unix.EINTR {
			continue
		}
		messages, parseErr := syscall.ParseNetlinkMessage(buffer[:max(n, 0)])
		if err != nil || parseErr != nil {
			return sum
		}
		for _, m := range messages {
			if m.Header.Type != byFamily || len(m.Data) < sizeMessage {
				return sum // the end, or this kernel has no such messages
			}
			if !sockets[uint64(binary.NativeEndian.Uint32(m.Data[4:]))] {
				continue
			}
			var received, sent uint64
			connected := false
			for rest := m.Data[sizeMessage:]; len(rest) >= unix.SizeofRtAttr; {
				length, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])
				if length < unix.SizeofRtAttr || length > len(rest) {
					break
				}
				value := rest[unix.SizeofRtAttr:length]
				switch {
				case kind == peer:
					connected = true
				case kind == queues && len(value) >= 4:
					received = uint64(binary.NativeEndian.Uint32(value))
				case kind == memory && len(value) > 4*memorySent+4:
					sent = uint64(binary.NativeEndian.Uint32(value[4*memorySent:]))
				}
				rest = rest[min((length+3)&^3, len(rest)):]
			}
			if sum += sent; !connected { // else it is what the other one has sent
				sum += received
			}
		}
	}
}

// A disk is a file system of folders that a command writes.
type disk struct {
	dir  string
	free uint64 // bytes when the command began
}

// disksOf returns the file systems of folders.
func disksOf(folders []string) (list []disk) {
	var known []unix.Fsid
	for _, dir := range folders {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) != nil || slices.Contains(known, s.Fsid) {
			continue
		}
		known = append(known, s.Fsid)
		list = append(list, disk{dir: dir, free: s.Bavail * uint64(s.Bsize)})
	}
	return list
}

func freeSpace(dir string) uint64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
