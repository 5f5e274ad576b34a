package peer_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/command/shell/supervise"
	"github.com/sentinel-runtime/sentinel/host/internal/peer"
)

// TestMain is also the processes of the tests: a server, a client, and what starts one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "serve":
			serve(os.Args[2], os.Args[3:])
		case "ask":
			ask(os.Args[2], os.Args[3], len(os.Args) > 4)
		case "forlorn": // a descendant of a supervisor that it kills, and that has left it otherwise as well
			child(append([]string{"kill", strconv.Itoa(os.Getppid()), strconv.Itoa(os.Getpid())}, os.Args[2:]...), &syscall.SysProcAttr{Setsid: true}, os.Stdout)
			time.Sleep(time.Hour) // it gets the signal of its supervisor's end
		case "kill":
			supervisor, err := strconv.Atoi(os.Args[2])
			check(err)
			check(unix.Kill(supervisor, unix.SIGKILL))
			for strconv.Itoa(os.Getppid()) == os.Args[3] {
				time.Sleep(time.Millisecond)
			}
			ask(os.Args[4], os.Args[5], false)
		case "many":
			for range 30 {
				child([]string{"more", strconv.Itoa(os.Getpid())}, nil, os.Stdout)
			}
			return // the server adopts them
		case "more":
			open()
			for strconv.Itoa(os.Getppid()) == os.Args[2] {
				time.Sleep(time.Millisecond)
			}
			fmt.Println("open")
			for server := os.Getppid(); os.Getppid() == server; {
				time.Sleep(10 * time.Millisecond)
			}
			return
		case "hide":
			hide(os.Args[2], os.Args[3])
		case "start": // and wait
			run(os.Args[2:], nil, os.Stdout)
			return
		case "leave": // a descendant that has left its parents, their session and environment
			child(append([]string{"orphan", strconv.Itoa(os.Getpid())}, os.Args[2:]...), &syscall.SysProcAttr{Setsid: true}, os.Stdout)
			return
		case "orphan":
			for strconv.Itoa(os.Getppid()) == os.Args[2] {
				time.Sleep(time.Millisecond)
			}
			ask(os.Args[3], os.Args[4], false)
		}
	}
	os.Exit(m.Run())
}

// open opens many files.
func open() {
	for range 900 {
		_, err := unix.Dup(0)
		check(err)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// child starts this program.
func child(args []string, attr *syscall.SysProcAttr, out io.Writer) *exec.Cmd {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{"peer.test"}, args...), Env: []string{}, SysProcAttr: attr, Stdout: out, Stderr: os.Stderr}
	check(cmd.Start())
	return cmd
}

func run(args []string, attr *syscall.SysProcAttr, out io.Writer) {
	check(child(args, attr, out).Wait())
}

// serve answers with the process that asks, on a socket and a port, until its input ends. It
// starts processes below it, if there are any.
func serve(socket string, below []string) {
	late := make(chan *http.Request)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		check(json.NewEncoder(w).Encode(peer.Of(r)))
	})
	mux.HandleFunc("/late", func(_ http.ResponseWriter, r *http.Request) {
		late <- r // and the connection stays until it was looked at
		late <- nil
	})
	mux.HandleFunc("/last", func(w http.ResponseWriter, _ *http.Request) { // the client of /late has ended
		check(json.NewEncoder(w).Encode(peer.Of(<-late)))
		<-late
	})
	s := &http.Server{Handler: mux, ConnContext: peer.ConnContext}
	l, err := net.Listen("unix", socket)
	check(err)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() { check(s.Serve(l)) }()
	go func() { check(s.Serve(port)) }()
	check(os.WriteFile(socket+".port", []byte(port.Addr().String()), 0o600))
	fmt.Println("ready")
	if len(below) > 0 {
		check(supervise.BecomeSubreaper())
		run(below, nil, os.Stdout)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// dial connects to a server by its socket or port.
func dial(network, socket string) net.Conn {
	if network == "unix" {
		c, err := net.Dial("unix", socket)
		check(err)
		return c
	}
	port, err := os.ReadFile(socket + ".port")
	check(err)
	at, err := netip.ParseAddrPort(string(port))
	check(err)
	if network == "mapped" { // a socket of IPv6 with the address of IPv4
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		check(err)
		check(unix.Connect(fd, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}))
		f := os.NewFile(uintptr(fd), "mapped")
		defer f.Close()
		c, err := net.FileConn(f)
		check(err)
		return c
	}
	c, err := net.Dial("tcp", at.String())
	check(err)
	return c
}

// ask prints what a server says of this process. With late it ends before the server looks.
func ask(network, socket string, late bool) {
	c := dial(network, socket)
	path := "/"
	if late {
		path = "/late"
	}
	_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	check(err)
	if late {
		os.Exit(0)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	check(err)
	_, err = io.Copy(os.Stdout, res.Body)
	check(err)
	os.Exit(0)
}

func init() {
	if len(os.Args) > 1 && os.Args[1] == "hide" {
		runtime.LockOSThread() // the first thread executes hide
	}
}

// hide asks by a socket that is not among the files of this process in /proc.
func hide(how, socket string) {
	port, err := os.ReadFile(socket + ".port")
	check(err)
	at, err := netip.ParseAddrPort(string(port))
	check(err)
	connect := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		check(err)
		check(unix.Connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
		return fd
	}
	request := []byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	answer := func(fd int) {
		text := make([]byte, 4096)
		n, err := unix.Read(fd, text)
		check(err)
		_, body, _ := strings.Cut(string(text[:n]), "\r\n\r\n")
		fmt.Print(body)
		os.Exit(0)
	}
	ask := func() {
		fd := connect()
		_, err := unix.Write(fd, request)
		check(err)
		answer(fd)
	}
	switch how {
	case "first thread ended":
		go func() {
			runtime.LockOSThread()
			for { // until it has
				text, err := os.ReadFile("/proc/self/status")
				if check(err); strings.Contains(string(text), "\nState:\tZ") {
					break
				}
				time.Sleep(time.Millisecond)
			}
			ask()
		}()
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	case "files of a thread":
		go func() {
			runtime.LockOSThread()
			check(unix.Unshare(unix.CLONE_FILES))
			ask()
		}()
		select {}
	case "calls under way": // they hold the socket, and no table of files has it
		fd := connect()
		var pipe [2]int
		check(unix.Pipe2(pipe[:], unix.O_CLOEXEC))
		threads, text := make(chan int, 2), make(chan []byte)
		go func() {
			runtime.LockOSThread()
			threads <- unix.Gettid()
			body := make([]byte, 4096)
			n, _, err := unix.Recvfrom(fd, body, 0)
			check(err)
			text <- body[:n]
		}()
		go func() {
			runtime.LockOSThread()
			threads <- unix.Gettid()
			_, err := unix.Splice(pipe[0], nil, fd, nil, len(request), 0)
			check(err)
		}()
		for range 2 {
			for call := fmt.Sprintf("/proc/self/task/%d/syscall", <-threads); ; { // until it is in its call
				now, err := os.ReadFile(call)
				if check(err); bytes.HasPrefix(now, fmt.Appendf(nil, "%d ", unix.SYS_RECVFROM)) || bytes.HasPrefix(now, fmt.Appendf(nil, "%d ", unix.SYS_SPLICE)) {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		check(unix.Close(fd))
		_, err := unix.Write(pipe[1], request)
		check(err)
		_, body, _ := strings.Cut(string(<-text), "\r\n\r\n")
		fmt.Print(body)
		os.Exit(0)
	case "in flight":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		check(err)
		fd := connect()
		check(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 1)) // it is sent 200 ms later
		_, err = unix.Write(fd, request)
		check(err)
		check(unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0))
		check(unix.Close(fd))
		time.Sleep(600 * time.Millisecond) // the server has looked by then, or this process is found
		rights := make([]byte, 64)
		_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), rights, 0)
		check(err)
		messages, err := unix.ParseSocketControlMessage(rights[:n])
		check(err)
		fds, err := unix.ParseUnixRights(&messages[0])
		check(err)
		answer(fds[0])
	}
}

// begin starts a server, which has no descendants but those of below.
func begin(t *testing.T, below ...string) (socket string, out *bufio.Reader) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	for i := range below {
		below[i] = strings.ReplaceAll(below[i], "SOCKET", socket)
	}
	cmd := exec.Command("/proc/self/exe", append([]string{"serve", socket}, below...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(err)
	text, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	out = bufio.NewReader(text)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	return socket, out
}

func decode(t *testing.T, text []byte) (p peer.Process) {
	t.Helper()
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// A process that is not below the server is apart, whether or not another one is below. By its
// Unix socket it is known, and by its port if it was looked for.
func TestApart(t *testing.T) {
	for _, below := range [][]string{nil, {"many", "x"}} {
		socket, out := begin(t, below...)
		for range 15 * len(below) {
			if line, err := out.ReadString('\n'); line != "open\n" {
				t.Fatal(line, err)
			}
		}
		for _, network := range []string{"unix", "tcp", "mapped"} {
			cmd := exec.Command("/proc/self/exe", "ask", network, socket)
			out, err := cmd.Output()
			p, known := decode(t, out), network == "unix" || below != nil
			if err != nil || p.Standing != peer.Apart || (known || p.PID != 0) && (p.PID != cmd.Process.Pid || p.Program != "peer.test") {
				t.Errorf("%s, %s below: %+v, %v", network, below, p, err)
			}
		}
	}
}

// A process below the server is, also one that has left its parents, session and environment.
func TestBelowServer(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		for name, args := range map[string][]string{"child": {"ask", network, "SOCKET"}, "grandchild": {"start", "start", "ask", network, "SOCKET"}, "orphan": {"leave", network, "SOCKET"}} {
			_, out := begin(t, args...)
			line, err := out.ReadBytes('\n')
			if p := decode(t, line); err != nil || p.Standing != peer.Below || p.PID == 0 {
				t.Errorf("%s, %s: %+v, %v", network, name, p, err)
			}
		}
	}
}

// A process below the server that hides its socket is none that is apart.
func TestHiddenSocket(t *testing.T) {
	for _, how := range []string{"first thread ended", "files of a thread", "in flight", "calls under way"} {
		_, out := begin(t, "hide", how, "SOCKET")
		line, err := out.ReadBytes('\n')
		if p := decode(t, line); err != nil || p.Standing == peer.Apart {
			t.Errorf("%s: %+v, %v", how, p, err)
		}
	}
}

// A process below a supervisor of another host is below a step, also when that one was killed.
func TestBelowSupervisor(t *testing.T) {
	socket, _ := begin(t)
	for _, network := range []string{"unix", "tcp"} {
		for _, how := range [][]string{{"start", "start", "ask"}, {"forlorn"}} {
			out := superviseCommand(t, append(how, network, socket))
			line, err := out.ReadBytes('\n')
			if p := decode(t, line); err != nil || p.Standing != peer.Below || p.PID == 0 {
				t.Errorf("%s, %s: %+v, %v", network, how, p, err)
			}
		}
	}
}

// superviseCommand has a supervisor of this process execute this program, and returns its output.
func superviseCommand(t *testing.T, args []string) *bufio.Reader {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(err)
	its := os.NewFile(uintptr(pair[1]), "supervisor")
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"x"}, Env: []string{supervise.Marker + "=1"}, ExtraFiles: []*os.File{its}}
	check(cmd.Start())
	its.Close()
	t.Cleanup(func() { _ = unix.Close(pair[0]); _ = cmd.Wait() })
	r, w, err := os.Pipe()
	check(err)
	t.Cleanup(func() { r.Close() })
	self, err := os.Executable()
	check(err)
	spec, err := supervise.Spec{File: filepath.Join(t.TempDir(), "tree"), Path: self, Dir: "/", Args: append([]string{"peer.test"}, args...)}.Encode()
	check(err)
	rights := unix.UnixRights(int(w.Fd()), int(w.Fd()), int(os.Stderr.Fd()))
	check(unix.Sendmsg(pair[0], []byte{supervise.OrderStart}, rights, nil, 0))
	_, err = unix.Write(pair[0], spec)
	check(err)
	w.Close()
	return bufio.NewReader(r)
}

// Of a process that has ended nothing can be found out.
func TestEnded(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		socket, _ := begin(t)
		run([]string{"ask", network, socket, "late"}, nil, nil)
		c := dial("unix", socket)
		_, err := fmt.Fprintf(c, "GET /last HTTP/1.1\r\nHost: x\r\n\r\n")
		check(err)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		check(err)
		var p peer.Process
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil || p.Standing != peer.Undecided {
			t.Errorf("%s: %+v, %v", network, p, err)
		}
		c.Close()
	}
}

// This process is not below itself, and clients of other machines are not looked for.
func TestSelfAndRemote(t *testing.T) {
	l, err := net.Listen("tcp", "[::]:0")
	check(err)
	got := make(chan peer.Process, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- peer.Of(r) })}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"127.0.0.1", "127.0.0.9"} {
		if res, err := http.Get("http://" + net.JoinHostPort(host, port)); err != nil {
			t.Error(err)
		} else if res.Body.Close(); (<-got).Standing != peer.Apart {
			t.Errorf("%s: this process is not apart", host)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x", nil)
	check(err)
	for remote, want := range map[string]peer.Standing{"192.0.2.1:9": peer.Apart, "[2001:db8::1]:9": peer.Apart, "127.0.0.1:1": peer.Undecided, "@": peer.Undecided} {
		if r.RemoteAddr = remote; peer.Of(r).Standing != want {
			t.Errorf("%s: %+v", remote, peer.Of(r))
		}
	}
	if p := peer.Self(); p.PID != os.Getpid() || p.Standing != peer.Apart || p.Program != "peer.test" {
		t.Errorf("%+v", p)
	}
}

// BenchmarkOf is what the first request of a connection costs.
func BenchmarkOf(b *testing.B) {
	for _, network := range []string{"unix", "tcp"} {
		b.Run(network, func(b *testing.B) {
			l, err := net.Listen(network, map[string]string{"unix": filepath.Join(b.TempDir(), "s"), "tcp": "127.0.0.1:0"}[network])
			check(err)
			defer l.Close()
			out, err := net.Dial(network, l.Addr().String())
			check(err)
			defer out.Close()
			in, err := l.Accept()
			check(err)
			defer in.Close()
			for b.Loop() {
				r := (&http.Request{}).WithContext(peer.ConnContext(b.Context(), in))
				if p := peer.Of(r); p.Standing != peer.Apart {
					b.Fatalf("%+v", p)
				}
			}
		})
	}
}
