package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/command/shell/supervise"
)

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// parent returns the parent of a process, 0 if it has none here.
func parent(pid int) int {
	p, _ := supervise.ProcessOf(pid)
	return p.Parent
}

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
	for range most {
		switch {
		case !ok || at.Gone():
			return Undecided
		case supervise.Marked(at.PID) || at.Parent == os.Getpid():
			return Below
		}
		// The first process, or one that another PID namespace started, has no parent.
		up, known := supervise.Process{}, true
		if at.Parent > 0 {
			up, known = supervise.ProcessOf(at.Parent)
		}
		// A parent that ends gives its children away, and its pid may be used again.
		again, still := supervise.ProcessOf(at.PID)
		switch {
		case !still || again.Start != at.Start:
			return Undecided
		case again.Parent != at.Parent:
			at = again
		case at.Parent == 0:
			return Apart
		default:
			at, ok = up, known
		}
	}
	return Undecided
}

// holder returns the process that holds the socket with the local address from of a connection
// to the address to. A process below a step can keep a socket where no table of open files has
// it, so one that is not found is not apart.
func holder(from, to netip.AddrPort) Process {
	found, err := socketOf(from, to)
	inode, owner := found.inode, found.owner
	if err != nil || inode == 0 { // it is closed, and may be answered nevertheless
		return Process{Standing: Undecided}
	}
	inside, outside := processes()
	if len(inside) == 0 {
		// A process that ended before this look would have closed the socket.
		if again, err := socketOf(from, to); err != nil || again.inode != inode {
			return Process{Standing: Undecided}
		}
		return Process{}
	}
	name := fmt.Sprintf("socket:[%d]", inode)
	is := Process{Standing: Undecided}
	if ofAnother(owner) {
		if !slices.ContainsFunc(inside, func(pid int) bool { return mayBe(pid, owner) }) {
			is.Standing = Apart
		}
	} else {
		is = search{name: name, left: maxOutside}.outside(outside)
	}
	if is.Standing == Below {
		return is
	}
	s := search{name: name, left: maxInside}
	for _, pid := range inside {
		if s.holds(pid) {
			return Process{PID: pid, Program: program(pid), Standing: Below}
		}
	}
	return is
}

// The most files that are looked at, of processes below steps and of others: a command may open
// millions.
const (
	maxInside  = 20_000
	maxOutside = 1_000_000
)

// A search looks for the process that has a socket open.
type search struct {
	name string // of the socket, as links in /proc have it
	left int    // files that may still be looked at
}

// lastOutside is the process in which a socket was found last.
var lastOutside atomic.Int64

// outside looks for the socket in processes that were not below steps, in the newest first:
// most clients have just been started.
func (s search) outside(list []int) Process {
	slices.Sort(list)
	if last := int(lastOutside.Load()); slices.Contains(list, last) {
		list = append(list, last)
	}
	for _, pid := range slices.Backward(list) {
		before, _ := supervise.ProcessOf(pid)
		if !s.in(procFile(pid, "")) { // nothing is known of one whose files cannot be read
			continue
		}
		p := Process{PID: pid, Program: program(pid), Standing: standing(pid)}
		if after, ok := supervise.ProcessOf(pid); !ok || after.Start != before.Start {
			return Process{Standing: Undecided}
		}
		if p.Standing == Apart {
			lastOutside.Store(int64(pid))
		}
		return p
	}
	return Process{Standing: Undecided}
}

// holds reports whether a process has the socket open. Threads may have files of their own, and
// are all that is left of a process whose first one has ended.
func (s *search) holds(pid int) bool {
	tasks, _ := os.ReadDir(procFile(pid, "task")) // a process that has ended has none
	return slices.ContainsFunc(tasks, func(t os.DirEntry) bool { return s.in(procFile(pid, "task/"+t.Name()+"/")) })
}

// in reports whether one of the files of a process or thread, a folder of /proc, is the socket.
func (s *search) in(dir string) bool {
	d, err := os.Open(dir + "fd")
	if err != nil {
		return false
	}
	defer d.Close()
	var to [64]byte
	for s.left > 0 {
		list, err := d.Readdirnames(min(1000, s.left))
		if err != nil {
			return false // its end, or that of the process
		}
		s.left -= len(list)
		for _, name := range list {
			if n, err := unix.Readlinkat(int(d.Fd()), name, to[:]); err == nil && string(to[:n]) == s.name {
				return true
			}
		}
	}
	return false
}

// ofAnother reports whether a socket is that of another account of this machine, whose files
// this process cannot read. Other numbers may be those of a user namespace, which any process
// makes, and the superuser's commands take every number.
func ofAnother(owner uint32) bool {
	if own := os.Geteuid(); own == 0 || owner == uint32(own) {
		return false
	}
	_, err := user.LookupId(strconv.FormatUint(uint64(owner), 10))
	return err == nil
}

// mayBe reports whether a process has had the rights of a user, such as a program that another
// user executes here.
func mayBe(pid int, user uint32) bool {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, ids, found := bytes.Cut(text, []byte("\nUid:"))
	ids, _, _ = bytes.Cut(ids, []byte("\n"))
	return !found || slices.Contains(strings.Fields(string(ids)), strconv.Itoa(int(user)))
}

// processes returns the processes below this one and below supervisors, and the others.
func processes() (inside, outside []int) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, nil // then no step was started
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // what was read counts
	children := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, ok := supervise.ProcessOf(pid)
		switch {
		case !ok:
		case p.Parent == os.Getpid() || supervise.Marked(pid):
			inside = append(inside, pid)
		default:
			outside = append(outside, pid)
			children[p.Parent] = append(children[p.Parent], pid)
		}
	}
	isInside := map[int]bool{}
	for at := 0; at < len(inside); at++ {
		isInside[inside[at]] = true
		inside = append(inside, children[inside[at]]...)
		delete(children, inside[at]) // once
	}
	outside = slices.DeleteFunc(outside, func(pid int) bool { return isInside[pid] })
	return inside, outside
}

// server looks for the process that has the socket at the other end of a connection.
func server(ctx context.Context, own, other netip.AddrPort, root int) (Process, bool, error) {
	const every = 5 * time.Millisecond
	for {
		found, err := socketOf(other, own)
		switch {
		case errors.Is(err, errNoSocket):
			if _, err := socketOf(own, other); err != nil { // nor is this end found
				return Process{}, false, fmt.Errorf("%w: %w", ErrUnknown, err)
			}
			return Process{}, false, ErrClosed
		case err != nil:
			return Process{}, false, fmt.Errorf("%w: %w", ErrUnknown, err)
		case found.inode == 0 && !found.open():
			return Process{}, false, ErrClosed
		case found.inode != 0:
			if p, below := serverOf(found, root); below || p.PID != 0 || ofAnother(found.owner) {
				return p, below, nil
			}
		}
		// It is not accepted, or on its way between processes.
		select {
		case <-ctx.Done():
			return Process{}, false, context.Cause(ctx)
		case <-time.After(every):
		}
	}
}

// serverOf returns the process that has a socket open, and whether it is root or below root.
func serverOf(found socket, root int) (p Process, below bool) {
	s := search{name: fmt.Sprintf("socket:[%d]", found.inode), left: maxOutside}
	children := childrenOfAll()
	inside := []int{root}
	for at := 0; at < len(inside) && root != 0; at++ {
		pid := inside[at]
		if s.holds(pid) {
			return Process{PID: pid, Program: program(pid)}, true
		}
		inside = append(inside, children[pid]...)
		delete(children, pid) // once
	}
	for _, list := range children {
		for _, pid := range list {
			if s.holds(pid) {
				return Process{PID: pid, Program: program(pid)}, false
			}
		}
	}
	return Process{}, false
}

// childrenOfAll returns the children of each process.
func childrenOfAll() map[int][]int {
	children := map[int][]int{}
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name.Name()); err == nil {
			if p, ok := supervise.ProcessOf(pid); ok {
				children[p.Parent] = append(children[p.Parent], pid)
			}
		}
	}
	return children
}

// A socket is one of this machine, as the kernel describes it.
type socket struct {
	inode uint32 // 0 if no process has accepted it, or the last one has closed it
	owner uint32
	state byte
}

// open reports whether a connection is established, or being so, at this end.
func (s socket) open() bool {
	states := []byte{unix.BPF_TCP_ESTABLISHED, unix.BPF_TCP_SYN_RECV, unix.BPF_TCP_NEW_SYN_RECV, unix.BPF_TCP_CLOSE_WAIT}
	return slices.Contains(states, s.state)
}

// errNoSocket says that the kernel has no socket with these addresses.
var errNoSocket = errors.New("no such socket")

// socketOf returns the socket of this machine that is connected from one address to another.
func socketOf(from, to netip.AddrPort) (s socket, err error) {
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
		return s, err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return s, err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT) // the kernel has answered before Sendto returns
	if err != nil {
		return s, err
	}
	// A socket that only listens has no other end. A short answer is an error.
	if answer = answer[:n]; n < 88 || native.Uint16(answer[4:]) != byFamily || !bytes.Equal(answer[20:24], id[:4]) {
		return s, errNoSocket
	}
	return socket{inode: native.Uint32(answer[84:]), owner: native.Uint32(answer[80:]), state: answer[17]}, nil
}
