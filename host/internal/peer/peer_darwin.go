package peer

import (
	"context"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// ofUnix returns the process that connected a Unix socket.
func ofUnix(c *net.UnixConn) Process {
	raw, err := c.SyscallConn()
	if err != nil {
		return Process{Standing: Undecided}
	}
	pid := 0
	controlErr := raw.Control(func(fd uintptr) {
		pid, err = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if err != nil || controlErr != nil || pid <= 0 {
		return Process{Standing: Undecided}
	}
	p := Process{PID: pid, Standing: standing(pid)}
	if info, err := unix.SysctlKinfoProc("kern.proc.pid", pid); err == nil {
		p.Program = unix.ByteSliceToString(info.Proc.P_comm[:])
	}
	return p
}

// standing follows the parents of a process. This process is not below itself.
func standing(pid int) Standing {
	for pid > 1 {
		info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil {
			return Undecided
		}
		if pid = int(info.Eproc.Ppid); pid == os.Getpid() {
			return Below
		}
	}
	return Apart
}

// parent returns the parent of a process, 0 if it has none.
func parent(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}

// holder returns nothing: this system does not tell the process of a TCP connection.
func holder(_, _ netip.AddrPort) Process { return Process{} }

// server returns nothing: this system does not tell the process of a TCP connection.
func server(context.Context, netip.AddrPort, netip.AddrPort, int) (Process, bool, error) {
	return Process{}, true, nil
}
