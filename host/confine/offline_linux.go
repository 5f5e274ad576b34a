package confine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// forward starts the loopback interface of this process's network and connects clients of a
// socket in the folder of the launcher with ports of it. The command has the folder no more.
func (p *plan) forward() error {
	if err := startLoopback(); err != nil {
		return fmt.Errorf("start the loopback interface: %w", err)
	}
	if err := os.Chdir(p.Launch); err != nil { // the path may be too long for an address
		return err
	}
	l, err := net.Listen("unix", socketFile)
	if err != nil {
		return err
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go connect(client)
		}
	}()
	return nil
}

// connect reads the port that a client wants and copies in both directions.
func connect(client net.Conn) {
	defer client.Close()
	in := bufio.NewReader(client)
	port, err := in.ReadString('\n')
	if err != nil {
		return
	}
	service, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strings.TrimSpace(port)), 10*time.Second)
	if err != nil {
		return // the client sees the end of its connection
	}
	defer service.Close()
	go func() {
		_, _ = io.Copy(service, in) // ends with either connection
		_ = service.(*net.TCPConn).CloseWrite()
	}()
	if _, err := client.Write([]byte{'\n'}); err == nil { // connected
		_, _ = io.Copy(client, service)
	}
}

func startLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// Dial connects to a TCP port on the loopback interface of an offline command.
func (p *Process) Dial(ctx context.Context, port string) (net.Conn, error) {
	dir, err := os.Open(p.launch.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	address := filepath.Join("/proc/self/fd", fmt.Sprint(dir.Fd()), socketFile)
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the command: %w", err)
	}
	end := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) }) // it is closed below
	_, err = io.WriteString(c, port+"\n")
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	if !end() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: unix.ECONNREFUSED}
	}
	return c, nil
}
