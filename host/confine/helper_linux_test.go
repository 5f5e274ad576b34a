package confine_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

// helperVariable makes this test binary, copied into a checkout, a program of a check.
const helperVariable = "CONFINE_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "":
		os.Exit(m.Run())
	case "calls":
		calls()
	case "memory":
		allocate()
	case "shared":
		share()
	case "busy":
		compute()
	case "ipc":
		callIPC()
	case "epoll":
		n, _ := strconv.Atoi(os.Args[1]) // the test wrote it
		takeEpoll(n, len(os.Args) > 2)
	case "files":
		takeFiles(os.Args[1:]...)
	case "watches":
		takeWatches()
	case "take":
		take(os.Args[1])
	case "signals":
		signalLauncher()
	case "waiting signals":
		takeSignals()
	case "connect":
		connectTo(os.Args[1:])
	case "attribute":
		fmt.Println(unix.Setxattr(os.Args[1], "user.sentinel", []byte("x"), 0))
	}
	os.Exit(0)
}

// helper returns a command that executes the test binary.
func helper(t testing.TB, name, arguments string) confine.Command {
	t.Helper()
	c := command(t, helperVariable+"="+name+" ./helper "+arguments)
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(c.Root, "helper"), program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitBegun returns when a command has made the file begun.
func awaitBegun(c confine.Command) {
	for {
		if _, err := os.Stat(filepath.Join(c.Root, "begun")); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// calls makes system calls that the filter refuses and prints those that are not.
func calls() {
	text := uintptr(unsafe.Pointer(&[]byte("helper-x\x00")[0]))
	for _, c := range []struct {
		name string
		args []uintptr
		want syscall.Errno
	}{
		{"mount", []uintptr{unix.SYS_MOUNT, 0, text, 0, 0, 0, 0}, unix.EPERM},
		{"unshare", []uintptr{unix.SYS_UNSHARE, unix.CLONE_NEWUSER}, unix.EPERM},
		{"clone", []uintptr{unix.SYS_CLONE, unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, unix.EPERM},
		{"clone3", []uintptr{unix.SYS_CLONE3, 0, 0}, unix.ENOSYS},
		{"clone of a thread with files of its own", []uintptr{unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_SIGHAND | unix.CLONE_THREAD}, unix.EPERM},
		{"clone of a process that shares files", []uintptr{unix.SYS_CLONE, unix.CLONE_FILES | uintptr(unix.SIGCHLD)}, unix.EPERM},
		{"unshare of files", []uintptr{unix.SYS_UNSHARE, unix.CLONE_FILES}, unix.EPERM},
		{"close_range with files of its own", []uintptr{unix.SYS_CLOSE_RANGE, 1000, 1000, unix.CLOSE_RANGE_UNSHARE}, unix.EPERM},
		{"setns", []uintptr{unix.SYS_SETNS, 0, 0}, unix.EPERM},
		{"mknodat block", []uintptr{unix.SYS_MKNODAT, ^uintptr(99), text, unix.S_IFBLK | 0o600, 7 << 8}, unix.EPERM},
		{"mknodat char", []uintptr{unix.SYS_MKNODAT, ^uintptr(99), text, unix.S_IFCHR | 0o600, 1<<8 | 3}, unix.EPERM},
		{"fchmod setuid", []uintptr{unix.SYS_FCHMOD, 1, unix.S_ISUID | 0o755}, unix.EPERM},
		{"fchmodat setgid", []uintptr{unix.SYS_FCHMODAT, ^uintptr(99), text, unix.S_ISGID | 0o755}, unix.EPERM},
		{"fchmodat2 setuid", []uintptr{unix.SYS_FCHMODAT2, ^uintptr(99), text, unix.S_ISUID | 0o755, 0}, unix.EPERM},
		{"openat setuid", []uintptr{unix.SYS_OPENAT, ^uintptr(99), text, unix.O_CREAT | unix.O_WRONLY, unix.S_ISUID | 0o755}, unix.EPERM},
		{"openat2", []uintptr{unix.SYS_OPENAT2, ^uintptr(99), text, text, 24}, unix.ENOSYS},
		{"mknodat setuid", []uintptr{unix.SYS_MKNODAT, ^uintptr(99), text, unix.S_IFREG | unix.S_ISUID | 0o755, 0}, unix.EPERM},
		{"vmsplice", []uintptr{unix.SYS_VMSPLICE, 0, text, 0, 0}, unix.ENOSYS},
		{"io_setup", []uintptr{unix.SYS_IO_SETUP, 1, text}, unix.ENOSYS},
		{"landlock_create_ruleset", []uintptr{unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION}, unix.ENOSYS},
		{"futex hash", []uintptr{unix.SYS_PRCTL, 78, 2}, unix.EINVAL}, // its size, which is 0 or more
		{"keyctl", []uintptr{unix.SYS_KEYCTL, 0, ^uintptr(3), 0}, unix.EPERM},
		{"add_key", []uintptr{unix.SYS_ADD_KEY, text, text, text, 1, ^uintptr(3)}, unix.EPERM},
		{"bpf", []uintptr{unix.SYS_BPF, 0, 0, 0}, unix.EPERM},
		{"ptrace", []uintptr{unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0}, unix.EPERM},
		{"process_vm_writev", []uintptr{unix.SYS_PROCESS_VM_WRITEV, uintptr(os.Getppid()), 0, 0, 0, 0, 0}, unix.EPERM},
		{"process_vm_readv", []uintptr{unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid()), 0, 0, 0, 0, 0}, unix.EPERM},
		{"pidfd_getfd", []uintptr{unix.SYS_PIDFD_GETFD, 0, 0, 0}, unix.EPERM},
		{"io_uring_setup", []uintptr{unix.SYS_IO_URING_SETUP, 1, 0}, unix.ENOSYS},
		{"perf_event_open", []uintptr{unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0}, unix.EPERM},
		{"prlimit of another", []uintptr{unix.SYS_PRLIMIT64, uintptr(os.Getppid()), unix.RLIMIT_NOFILE, 0, 0}, unix.EPERM},
		{"vsock", []uintptr{unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0}, unix.EPERM},
		{"MPTCP", []uintptr{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, unix.EPROTONOSUPPORT},
		{"UDP-Lite", []uintptr{unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE}, unix.EPROTONOSUPPORT},
		{"TIOCSTI", []uintptr{unix.SYS_IOCTL, 0, unix.TIOCSTI, text}, unix.EPERM},
		{"lease", []uintptr{unix.SYS_FCNTL, 0, unix.F_SETLEASE, unix.F_RDLCK}, unix.EPERM},
		{"priority of a user", []uintptr{unix.SYS_SETPRIORITY, unix.PRIO_USER, 0, 19}, unix.EPERM},
		{"priority of another", []uintptr{unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, uintptr(os.Getppid()), 19}, unix.EPERM},
		{"affinity of another", []uintptr{unix.SYS_SCHED_SETAFFINITY, uintptr(os.Getppid()), 8, text}, unix.EPERM},
		{"chroot", []uintptr{unix.SYS_CHROOT, text}, unix.EPERM},
		{"reboot", []uintptr{unix.SYS_REBOOT, 0, 0, 0, 0}, unix.EPERM},
		{"sethostname", []uintptr{unix.SYS_SETHOSTNAME, text, 1}, unix.EPERM},
		{"a newer call", []uintptr{4000}, unix.ENOSYS},
		{"x32", []uintptr{0x40000000 + unix.SYS_GETPID}, unix.ENOSYS},
	} {
		if runtime.GOARCH != "amd64" && c.name == "x32" {
			continue
		}
		args := append(c.args, 0, 0, 0, 0, 0, 0)
		_, _, errno := syscall.RawSyscall6(args[0], args[1], args[2], args[3], args[4], args[5], args[6])
		if errno != c.want {
			fmt.Printf("%s: errno %d, want %d\n", c.name, errno, c.want)
		}
	}
	fmt.Println("done")
}

// callIPC makes the calls for memory, semaphores and queues that processes of a user share, and prints
// the error numbers.
func callIPC() {
	text := uintptr(unsafe.Pointer(&[]byte("confine-test\x00")[0]))
	const key, create = 0x53454e54, 0o1000 | 0o600 // IPC_CREAT
	for _, c := range []struct {
		name string
		args [5]uintptr
	}{
		{"shmget", [5]uintptr{unix.SYS_SHMGET, key, 4096, create}}, {"semget", [5]uintptr{unix.SYS_SEMGET, key, 1, create}},
		{"msgget", [5]uintptr{unix.SYS_MSGGET, key, create}}, {"mq_open", [5]uintptr{unix.SYS_MQ_OPEN, text, unix.O_CREAT | unix.O_RDWR, 0o600}},
		{"shmctl", [5]uintptr{unix.SYS_SHMCTL, 0, 13, text}}, // SHM_STAT lists those of all
	} {
		_, _, errno := syscall.RawSyscall6(c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], 0, 0)
		fmt.Println(c.name, int(errno))
	}
}

// takeWatches makes inotify instances until the kernel refuses one, prints how many there are, and
// waits.
func takeWatches() {
	n := 0
	for ; ; n++ {
		if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
			break
		}
	}
	fmt.Println(n, "instances")
	time.Sleep(time.Minute)
}

// takeSignals sends signals to its own thread, which blocks them, until the kernel refuses one, and prints
// how many wait.
func takeSignals() {
	const signal = 40 // of those that wait in a queue
	runtime.LockOSThread()
	set := unix.Sigset_t{}
	set.Val[0] = 1 << (signal - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		fmt.Println(err)
		return
	}
	info := make([]byte, 128) // siginfo_t: number, errno, code
	*(*int32)(unsafe.Pointer(&info[0])), *(*int32)(unsafe.Pointer(&info[8])) = signal, -1
	n := 0
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), uintptr(unix.Gettid()), signal, uintptr(unsafe.Pointer(&info[0])), 0, 0)
		if errno != 0 {
			break
		}
		n++
	}
	fmt.Println(n)
}

// takeEpoll makes watches of epoll and waits. To hide their instances, it sends them through sockets
// without receiving them.
func takeEpoll(most int, hide bool) {
	const files, sent = 900, 100
	var list []int
	for range files {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			fmt.Println(err)
			return
		}
		list = append(list, fd)
	}
	var pair [2]int
	for n := 0; n*files < most; n++ {
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			break
		}
		for _, fd := range list {
			if err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{}); err != nil {
				break
			}
		}
		if hide {
			if n%sent == 0 {
				pair, _ = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0) // sending fails without one
			}
			err = errors.Join(err, unix.Sendmsg(pair[0], []byte{1}, unix.UnixRights(epoll), nil, 0), unix.Close(epoll))
		}
		if err != nil {
			fmt.Println(err)
			break
		}
	}
	time.Sleep(time.Minute)
}

// takeFiles opens files until the kernel refuses one, and waits. With a number, so many processes do.
func takeFiles(processes ...string) {
	if len(processes) > 0 {
		n, _ := strconv.Atoi(processes[0]) // the test wrote it
		for range n {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{helperVariable + "=files"}
			if err := cmd.Start(); err != nil {
				fmt.Println(err)
			}
		}
	}
	last := 0
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		last = fd
	}
	for i := range 16 { // for the runtime of Go
		_ = unix.Close(last - i) // it was only read
	}
	time.Sleep(time.Minute)
}

// connectTo connects to Unix sockets and prints what they answer.
func connectTo(paths []string) {
	for _, path := range paths {
		c, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println("refused")
			continue
		}
		text, _ := io.ReadAll(c)
		fmt.Printf("%s answers %s\n", path, text)
	}
}

// listenAt answers each connection to a socket.
func listenAt(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "the agent's key")
			c.Close()
		}
	}()
}
