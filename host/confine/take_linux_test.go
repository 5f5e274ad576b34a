package confine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hideInMessage has 100 MB in a message that waits to be sent. The thread that has closed the file, when the other one is in
// a call with the socket as its first argument, ends.
const hideInMessage = `
import array, os, socket, threading
def close():
    while True:
        with open("/proc/self/task/%d/syscall" % os.getpid()) as f:
            call = f.read().split()
        if len(call) > 3 and call[1] == hex(pair[0].fileno()):
            os.close(fd)
            open("closed", "w").close()
            return
fd = os.memfd_create("taken")
for _ in range(100):
    os.write(fd, bytes(1 << 20))
pair = socket.socketpair()
pair[0].setblocking(False)
try:
    while True:
        pair[0].send(bytes(4096))
except BlockingIOError:
    pair[0].setblocking(True)
threading.Thread(target=close).start()
pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
`

// The first thread ends where only another one shall be left. Go keeps the main goroutine on it
// while packages are initialised.
func init() {
	if os.Getenv(helperVariable) == "take without leader" {
		go take(os.Args[1])
		_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// take takes 500 MB, or what it can get, in a way that a launcher might not see, and waits.
func take(what string) {
	const length = 500 << 20
	fail := func(err error) {
		if err != nil {
			fmt.Println(what, err)
			os.Exit(1)
		}
	}
	const parts = 5 // each is less than a limit
	writePart := func(fd int) {
		for b, i := make([]byte, 1<<20), 0; i < length/parts>>20; i++ {
			_, err := unix.Write(fd, b)
			fail(err)
		}
	}
	write := func(fd int) {
		for range parts {
			writePart(fd)
		}
	}
	touch := func(b []byte) {
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	send := func(fd int) { // to itself, without receiving it
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		fail(err)
		fail(unix.Sendmsg(pair[0], []byte{1}, unix.UnixRights(fd), nil, 0))
		fail(unix.Close(fd))
	}
	wait := func(call func() error, files ...int) { // in a call, without the files being in the table
		begins := make(chan struct{})
		go func() {
			close(begins)
			fail(call())
		}()
		<-begins
		time.Sleep(50 * time.Millisecond) // until it waits
		for _, fd := range files {
			fail(unix.Close(fd))
		}
	}
	hold := func(fd int) { // in a call that waits, without an entry in the table of files
		var pipe [2]int
		fail(unix.Pipe2(pipe[:], unix.O_NONBLOCK))
		for err := error(nil); err == nil; _, err = unix.Write(pipe[1], make([]byte, 4096)) {
		}
		fail(unix.SetNonblock(pipe[1], false))
		offset := int64(0)
		wait(func() error { _, err := unix.Splice(fd, &offset, pipe[1], nil, 1<<20, 0); return err }, fd)
	}
	full := func() int { // a socket that takes nothing more
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		fail(err)
		fail(unix.SetNonblock(pair[0], true))
		for err := error(nil); err == nil; _, err = unix.Write(pair[0], make([]byte, 4096)) {
		}
		fail(unix.SetNonblock(pair[0], false))
		return pair[0]
	}
	children := func(n int, what string) {
		for range n {
			cmd := exec.Command("/proc/self/exe", what)
			cmd.Env = []string{helperVariable + "=take"}
			fail(cmd.Start())
		}
	}
	deleted := func() int {
		fd, err := unix.Open("taken", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		fail(err)
		fail(unix.Unlink("taken"))
		return fd
	}
	mapped := func(fd, flags int) []byte {
		b, err := unix.Mmap(fd, 0, length, unix.PROT_READ|unix.PROT_WRITE, flags)
		fail(err)
		return b
	}
	forks := func(n int, do func()) { // without the runtime of Go: do makes system calls only
		for range n {
			pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno != 0 {
				fail(errno)
			}
			if pid == 0 {
				for do(); ; {
					syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
				}
			}
		}
	}
	switch what {
	case "private":
		touch(mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON))
	case "fork":
		b := make([]byte, length/2)
		touch(b)
		forks(5, func() {})
		time.Sleep(500 * time.Millisecond) // to be looked at
		runtime.KeepAlive(b)
		fmt.Println("fine")
		os.Exit(0)
	case "shared":
		touch(mapped(-1, unix.MAP_SHARED|unix.MAP_ANON))
	case "memfd", "memfd on its way":
		fd, err := unix.MemfdCreate("taken", 0)
		fail(err)
		write(fd)
		if what == "memfd on its way" {
			send(fd)
		}
	case "memfd with one page mapped":
		for range parts {
			fd, err := unix.MemfdCreate("taken", 0)
			fail(err)
			writePart(fd)
			_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
			fail(err)
			fail(unix.Close(fd))
		}
	case "shared with one page mapped":
		b := mapped(-1, unix.MAP_SHARED|unix.MAP_ANON)
		for first := 0; first < length; first += length / parts { // never as much at once as the limit
			touch(b[first : first+length/parts])
			_, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(unsafe.Pointer(&b[first])), length/parts, unix.MADV_DONTNEED)
			if errno != 0 {
				fail(errno)
			}
		}
		b[0] = 1
	case "memfd in a call":
		for range parts {
			fd, err := unix.MemfdCreate("taken", 0)
			fail(err)
			writePart(fd)
			hold(fd)
		}
	case "memfd in a call that is not executed": // of threads that get next to nothing of a processor beside others
		var all, first unix.CPUSet
		fail(unix.SchedGetaffinity(0, &all))
		for cpu := 0; first.Count() == 0; cpu++ {
			if all.IsSet(cpu) {
				first.Set(cpu)
			}
		}
		onFirst := func(do func()) {
			ready := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				fail(unix.SchedSetaffinity(0, &first))
				close(ready)
				do()
			}()
			<-ready
		}
		onFirst(func() {
			for { //nolint:staticcheck // it is to be busy
			}
		})
		for range parts {
			fd, err := unix.MemfdCreate("taken", 0)
			fail(err)
			for b, i := bytes.Repeat([]byte{1}, 1<<20), 0; i < length/parts>>20; i++ {
				_, err := unix.Write(fd, b)
				fail(err)
			}
			fail(unix.Ftruncate(fd, 2<<30)) // what is not written takes no memory, and long to read
			to, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			fail(err)
			onFirst(func() {
				fail(unix.Setpriority(unix.PRIO_PROCESS, 0, 19))
				_, err := unix.Preadv(fd, slices.Repeat([][]byte{to}, 1024), 0)
				fail(err)
			})
			for atomic.LoadUint32((*uint32)(unsafe.Pointer(&to[0]))) == 0 { // until it is in the call
				time.Sleep(time.Millisecond)
			}
			fail(unix.Close(fd))
		}
		fmt.Println("hidden")
	case "memfd in a message that waits", "deleted in a message that waits":
		to := full()
		for range parts {
			var fd int
			if strings.HasPrefix(what, "memfd") {
				var err error
				fd, err = unix.MemfdCreate("taken", 0)
				fail(err)
				writePart(fd)
			} else {
				fd = deleted()
				writePart(fd)
				fail(unix.Fsync(fd))
			}
			wait(func() error { return unix.Sendmsg(to, []byte{1}, unix.UnixRights(fd), nil, 0) }, fd)
		}
	case "sockets in poll":
		for n := 0; n < length; {
			var files []int
			var polled []unix.PollFd
			for range 60 {
				pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
				fail(err)
				files = append(files, pair[:]...)
				polled = append(polled, unix.PollFd{Fd: int32(pair[0])}, unix.PollFd{Fd: int32(pair[1])})
				for b := make([]byte, 4096); ; {
					written, err := unix.Write(pair[0], b)
					if err != nil {
						break
					}
					n += written
				}
			}
			wait(func() error { _, err := unix.Poll(polled, -1); return err }, files...)
		}
	case "semaphores":
		const ofSet = 32_000 // 2 MB
		for range length / (ofSet * 64) {
			if _, _, errno := unix.Syscall(unix.SYS_SEMGET, 0, ofSet, 0o600); errno != 0 {
				fail(errno)
			}
		}
	case "semaphores to undo": // the sets take little, and each process has as many numbers as they have semaphores
		const ofSet = 32_000
		var sets []uintptr
		for range 40 {
			set, _, errno := unix.Syscall(unix.SYS_SEMGET, 0, ofSet, 0o600)
			if errno != 0 {
				fail(errno)
			}
			sets = append(sets, set)
		}
		forks(800, func() {
			operation := [3]int16{0, 1, 0x1000} // adds 1 to the first, with SEM_UNDO
			for _, set := range sets {
				_, _, _ = syscall.RawSyscall(unix.SYS_SEMOP, set, uintptr(unsafe.Pointer(&operation)), 1)
			}
		})
	case "mappings": // without a page
		const most = 60_000
		b, err := unix.Mmap(-1, 0, most*4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		fail(err)
		for i := 0; i < most; i += 2 {
			fail(unix.Mprotect(b[i*4096:(i+1)*4096], unix.PROT_READ))
		}
		forks(100, func() {})
	case "messages": // without a text
		var message [2]int64 // type and text
		message[0] = 1
		const noWait = 0o4000
		for range 2000 {
			queue, _, errno := unix.Syscall(unix.SYS_MSGGET, 0, 0o600, 0)
			for errno == 0 {
				_, _, errno = unix.Syscall6(unix.SYS_MSGSND, queue, uintptr(unsafe.Pointer(&message)), 0, noWait, 0, 0)
			}
			if errno != unix.EAGAIN { // it is full
				fail(errno)
			}
		}
	case "connections of Unix sockets": // that are not accepted, and closed at the other end
		n := 0
		for i := 0; n < 2*length; i++ {
			l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			fail(err)
			address := &unix.SockaddrUnix{Name: fmt.Sprintf("/tmp/listener%d", i)}
			fail(unix.Bind(l, address))
			fail(unix.Listen(l, 4096)) // the kernel bounds it
			for n < 2*length {
				c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
				fail(err)
				_ = unix.SetsockoptInt(c, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<30) // the kernel bounds it
				connectErr := unix.Connect(c, address)
				for b := make([]byte, 64<<10); connectErr == nil; {
					written, err := unix.Write(c, b)
					if err != nil {
						break
					}
					n += written
				}
				fail(unix.Close(c))
				if connectErr != nil {
					break // as many wait as may
				}
			}
		}
	case "pipes":
		children(30, "pipes of one")
	case "pipes of one":
		var files unix.Rlimit
		fail(unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
		for range min(1900, files.Cur/2-20) { // the runtime needs some
			var pipe [2]int
			fail(unix.Pipe2(pipe[:], unix.O_NONBLOCK))
			for err := error(nil); err == nil; _, err = unix.Write(pipe[1], make([]byte, 4096)) {
			}
		}
	case "connections": // each is filled and never read
		l, err := net.Listen("tcp", "127.0.0.1:0")
		fail(err)
		var kept []net.Conn
		for i := range 200 {
			c, err := net.Dial("tcp", l.Addr().String())
			fail(err)
			accepted, err := l.Accept()
			fail(err)
			kept = append(kept, c, accepted)
			fail(c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)))
			n, _ := c.Write(make([]byte, 32<<20)) // the deadline ends it
			fmt.Println(i, n)
		}
		time.Sleep(time.Minute)
		runtime.KeepAlive(kept)
	case "orphans": // each is filled and closed, and the other end never reads
		buffer := func(option, size int) func(_, _ string, c syscall.RawConn) error {
			return func(_, _ string, c syscall.RawConn) (err error) {
				controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, size) })
				return errors.Join(controlErr, err)
			}
		}
		listening := net.ListenConfig{Control: buffer(unix.SO_RCVBUF, 1)}
		l, err := listening.Listen(context.Background(), "tcp", "127.0.0.1:0")
		fail(err)
		dialer := net.Dialer{Control: buffer(unix.SO_SNDBUF, 8<<20)} // the kernel bounds it
		var kept []net.Conn
		n := 0
		for range 3000 {
			c, err := dialer.Dial("tcp", l.Addr().String())
			fail(err)
			accepted, err := l.Accept()
			fail(err)
			kept = append(kept, accepted)
			fail(c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)))
			written, _ := c.Write(make([]byte, 16<<20)) // the deadline ends it
			fail(c.Close())
			n += written
		}
		fmt.Println("written", n)
		time.Sleep(time.Minute)
		runtime.KeepAlive(kept)
	case "unaccepted 127.0.0.1:0", "unaccepted :0": // the other end is closed
		large := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
			controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<30) }) // the kernel bounds it
			return errors.Join(controlErr, err)
		}}
		l, err := large.Listen(context.Background(), "tcp", strings.TrimPrefix(what, "unaccepted "))
		fail(err)
		n := 0
		for range 3000 {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port))
			fail(err)
			fail(c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)))
			written, _ := c.Write(make([]byte, 1<<20)) // the deadline ends it
			fail(c.Close())
			n += written
		}
		fmt.Println("written", n)
		time.Sleep(time.Minute)
		runtime.KeepAlive(l)
	case "executed":
		for range parts {
			executeMemory(length/parts, fail)
		}
	case "ending":
		for range 4 {
			children(1, "busy")
		}
		children(10, "ending one")
	case "ending one":
		fillSocketsAndEnd(fail)
	case "busy":
		compute()
	case "folios in pipes":
		keepFolios(length/(1<<20), fail)
	case "processes":
		n := 0
		for ; ; n++ {
			if pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); errno != 0 {
				break
			} else if pid == 0 {
				for {
					syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
				}
			}
		}
		fmt.Println(n)
		os.Exit(0)
	case "many sockets":
		children(20, "sockets of one")
	case "sockets of one":
		for range 500 {
			_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			fail(err)
		}
	case "page tables": // one page of each, of a mapping without data
		const large = 1 << 40
		b, err := unix.Mmap(-1, 0, large, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		fail(err)
		fail(unix.Madvise(b, unix.MADV_NOHUGEPAGE))
		sum := byte(0)
		for i := 0; i < length/4096*(2<<20); i += 2 << 20 {
			sum += b[i]
		}
		runtime.KeepAlive(sum)
	case "sockets", "sockets of a process that others may not look into":
		if what != "sockets" {
			fail(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
		}
		b := make([]byte, 64<<10)
		for n := 0; n < length; {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
			fail(err)
			_ = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<30) // the kernel bounds it
			for {
				written, err := unix.Write(pair[0], b)
				if err != nil {
					break
				}
				n += written
			}
		}
	case "deleted":
		write(deleted())
	case "deleted in a call":
		for range parts {
			fd := deleted()
			writePart(fd)
			fail(unix.Fsync(fd))
			hold(fd)
		}
	case "deleted on its way":
		fd := deleted()
		fail(unix.Ftruncate(fd, length))
		b := mapped(fd, unix.MAP_SHARED)
		send(fd)
		touch(b)
	case "deleted and mapped":
		fd := deleted()
		fail(unix.Ftruncate(fd, length))
		b := mapped(fd, unix.MAP_SHARED)
		fail(unix.Close(fd))
		touch(b)
	case "deep": // below a path that is too long for the system
		name := strings.Repeat("d", 200)
		for range 25 {
			fail(unix.Mkdir(name, 0o700))
			fail(unix.Chdir(name))
		}
		fd, err := unix.Open("taken", unix.O_WRONLY|unix.O_CREAT, 0o600)
		fail(err)
		write(fd)
	}
	time.Sleep(time.Minute)
}
