package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/command/shell/supervise"
)

// supervisors are the names, as argv[0], of processes whose descendants are those of steps
// and checks. A process that takes one of them loses rights.
var supervisors = []string{"shell-supervise", "confine"}

// isSupervisor reports whether a process is a supervisor.
func isSupervisor(pid int) bool {
	text, err := os.ReadFile(procFile(pid, "cmdline"))
	name, _, _ := bytes.Cut(text, []byte{0})
	return err == nil && slices.Contains(supervisors, string(name))
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// program returns the base name of a process's executable.
func program(pid int) string {
	path, err := os.Readlink(procFile(pid, "exe"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(path), " (deleted)")
}

// ofUnix returns the process that connected a Unix socket.
func ofUnix(c *net.UnixConn) (p Process) {
	p.Standing = Undecided
	raw, err := c.SyscallConn()
	if err != nil {
		return p
	}
	var cred *unix.Ucred
	handle, handleErr := -1, error(nil)
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		handle, handleErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	if handleErr == nil {
		defer unix.Close(handle)
	}
	if err != nil || controlErr != nil || cred.Pid <= 0 { // 0 is a process of another PID namespace
		return p
	}
	p.PID, p.Program = int(cred.Pid), program(int(cred.Pid))
	p.Standing = standing(p.PID)
	// A process that is alive now has had its pid all the time. Without a handle, in a
	// kernel before 6.5, the pid alone counts.
	if !errors.Is(handleErr, unix.ENOPROTOOPT) && (handleErr != nil || !alive(handle)) {
		return Process{PID: p.PID, Standing: Undecided}
	}
	return p
}

// alive reports whether the process of a handle has not ended.
func alive(handle int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 0)
	return err == nil && n == 0
}

// standing follows the parents of a process. This process is not below itself.
func standing(pid int) Standing {
	const most = 1000 // deeper than trees of processes are
	at, ok := supervise.ProcessOf(pid)
	if ok && isSupervisor(pid) {
		return Below
	}
	for range most {
		switch {
		case !ok || at.Gone():
			return Undecided
		case at.Parent == 0: // the first process, or one that another PID namespace started
			return Apart
		case at.Parent == os.Getpid() || isSupervisor(at.Parent):
			return Below
		}
		up, known := supervise.ProcessOf(at.Parent)
		// A parent that ends gives its children away, and its pid may be used again.
		again, still := supervise.ProcessOf(at.PID)
		switch {
		case still && again.Start == at.Start && again.Parent == at.Parent:
			at, ok = up, known
		case still && again.Start == at.Start:
			at = again
		default:
			return Undecided
		}
	}
	return Undecided
}

// holder returns the process below a step that holds the socket with the local address
// from of a connection to the address to. Any other process is not looked for.
func holder(from, to netip.AddrPort) Process {
	inode, owner, err := socketOf(from, to)
	if err != nil || inode == 0 { // it is closed, and may be answered nevertheless
		return Process{Standing: Undecided}
	}
	name := fmt.Sprintf("socket:[%d]", inode)
	for _, pid := range below() {
		switch has, err := holds(pid, name); {
		case has:
			return Process{PID: pid, Program: program(pid), Standing: Below}
		case errors.Is(err, os.ErrPermission) && !isLauncher(pid) && mayBe(pid, owner):
			return Process{Standing: Undecided}
		}
	}
	return Process{}
}

// holds reports whether a process has a file of that name open.
func holds(pid int, name string) (bool, error) {
	dir := procFile(pid, "fd")
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if to, err := os.Readlink(dir + "/" + e.Name()); err == nil && to == name {
			return true, nil
		}
	}
	return false, err
}

// isLauncher reports whether a process is the launcher of a confined command, of any sentinel
// process: it is named so and is the first process of a PID namespace. Its files cannot be read,
// and a confined command cannot take its place. A command that is not confined can, as it can
// have any other program send its request.
func isLauncher(pid int) bool {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return false
	}
	_, ids, _ := bytes.Cut(text, []byte("\nNSpid:"))
	ids, _, _ = bytes.Cut(ids, []byte("\n"))
	list := strings.Fields(string(ids))
	return len(list) > 1 && list[len(list)-1] == "1" && isSupervisor(pid)
}

// mayBe reports whether a process whose files cannot be read has had the rights of a user,
// such as a program that protects its memory. One that another user executes has not
// opened a socket of this one.
func mayBe(pid int, user uint32) bool {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, ids, found := bytes.Cut(text, []byte("\nUid:"))
	ids, _, _ = bytes.Cut(ids, []byte("\n"))
	return !found || slices.Contains(strings.Fields(string(ids)), strconv.Itoa(int(user)))
}

// below returns the processes below this process and below supervisors.
func below() (list []int) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil // then no file of a process can be read, and no step was started
	}
	children := map[int][]int{}
	for _, e := range names {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := supervise.ProcessOf(pid); ok {
			children[p.Parent] = append(children[p.Parent], pid)
		}
	}
	const kernel = 2 // the parent of the kernel's threads
	delete(children, kernel)
	list = append(list, children[os.Getpid()]...)
	delete(children, os.Getpid())
	for pid := range children {
		if isSupervisor(pid) {
			list = append(list, pid)
		}
	}
	for at := 0; at < len(list); at++ {
		list = append(list, children[list[at]]...)
		delete(children, list[at]) // once
	}
	return list
}

// socketOf returns the inode and the owner of the socket of this machine that is connected
// from one address to another.
func socketOf(from, to netip.AddrPort) (inode, owner uint32, err error) {
	const byFamily = 20 // SOCK_DIAG_BY_FAMILY
	request := make([]byte, 72)
	native, network := binary.NativeEndian, binary.BigEndian
	native.PutUint32(request, uint32(len(request)))
	native.PutUint16(request[4:], byFamily)
	native.PutUint16(request[6:], unix.NLM_F_REQUEST)
	request[16], request[17] = unix.AF_INET, unix.IPPROTO_TCP // struct inet_diag_req_v2
	if from.Addr().Is6() {
		request[16] = unix.AF_INET6
	}
	native.PutUint32(request[20:], ^uint32(0)) // every state
	id := request[24:]                         // struct inet_diag_sockid
	network.PutUint16(id, from.Port())
	network.PutUint16(id[2:], to.Port())
	copy(id[4:], from.Addr().AsSlice())
	copy(id[20:], to.Addr().AsSlice())
	native.PutUint64(id[40:], ^uint64(0)) // INET_DIAG_NOCOOKIE

	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, 0, err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT) // the kernel has answered before Sendto returns
	if err != nil {
		return 0, 0, err
	}
	// A socket that only listens has no other end.
	if answer = answer[:n]; n < 88 || native.Uint16(answer[4:]) != byFamily || !bytes.Equal(answer[20:24], id[:4]) {
		return 0, 0, errors.New("no such socket")
	}
	return native.Uint32(answer[84:]), native.Uint32(answer[80:]), nil
}
