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
	s := search{name: fmt.Sprintf("socket:[%d]", inode), left: maxFiles}
	inside := below()
	for _, pid := range inside {
		switch has, err := s.holds(pid); {
		case has:
			return Process{PID: pid, Program: program(pid), Standing: Below}
		case s.left <= 0:
			// Another process that has it open is no longer found among so many files, but
			// one that is apart is.
			return s.apart(inside)
		case errors.Is(err, os.ErrPermission) && !isLauncher(pid) && mayBe(pid, owner):
			return Process{Standing: Undecided}
		}
	}
	if s.inFlight {
		return Process{Standing: Undecided}
	}
	return Process{}
}

// maxFiles limits how many files of processes below this one are looked at: a command may open
// millions.
const maxFiles = 20_000

// A search looks for the process that has a socket open.
type search struct {
	name     string // of the socket, as links in /proc have it
	left     int    // files that may still be looked at
	inFlight bool   // a Unix socket was found with files that are sent over it: any of them could be the socket
}

// holds reports whether a process has the socket open. Threads may have files of their own, and
// are all that is left of a process whose first one has ended.
func (s *search) holds(pid int) (bool, error) {
	leader := strconv.Itoa(pid)
	found, err := s.in("/proc/" + leader)
	if found {
		return true, nil
	}
	tasks, _ := os.ReadDir(procFile(pid, "task")) // a process that has ended has none
	for _, t := range tasks {
		if t.Name() == leader {
			continue
		}
		if found, _ := s.in(procFile(pid, "task/"+t.Name())); found {
			return true, nil
		}
	}
	return false, err
}

// in reports whether one of the files of a process or thread, a folder of /proc, is the socket.
func (s *search) in(dir string) (bool, error) {
	d, err := os.Open(dir + "/fd")
	if err != nil {
		return false, err
	}
	defer d.Close()
	for s.left > 0 {
		list, err := d.Readdirnames(min(1000, s.left))
		if err != nil {
			return false, nil //nolint:nilerr // its end, or that of the process
		}
		s.left -= len(list)
		for _, name := range list {
			switch to, err := os.Readlink(dir + "/fd/" + name); {
			case err != nil || !strings.HasPrefix(to, "socket:"):
			case to == s.name:
				return true, nil
			case !s.inFlight:
				text, err := os.ReadFile(dir + "/fdinfo/" + name)
				_, count, has := bytes.Cut(text, []byte("\nscm_fds:"))
				count, _, _ = bytes.Cut(count, []byte("\n"))
				s.inFlight = err == nil && has && string(bytes.TrimSpace(count)) != "0"
			}
		}
	}
	return false, nil
}

// apart looks for the socket in the processes that are not among those given, and returns that
// its process is apart if one has it.
func (s *search) apart(inside []int) Process {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return Process{Standing: Undecided}
	}
	s.left = 50 * maxFiles
	for _, e := range names {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || slices.Contains(inside, pid) {
			continue
		}
		if has, _ := s.holds(pid); has { // of one whose files cannot be read nothing is known
			return Process{}
		}
	}
	return Process{Standing: Undecided}
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
