package confine_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

// helperVariable makes this test binary, copied into a checkout, a program of a check.
const helperVariable = "CONFINE_HELPER"

// The first thread ends where only another one shall be left. Go keeps the main goroutine on it
// while packages are initialised.
func init() {
	if os.Getenv(helperVariable) == "take without leader" {
		go take(os.Args[1])
		_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

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
	case "take":
		take(os.Args[1])
	case "signals":
		signalLauncher()
	case "connect":
		connectTo(os.Args[1:])
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

func needNamespaces(t testing.TB) {
	t.Helper()
	for _, g := range confine.Gaps() {
		if g.Wall == confine.WallNamespaces {
			t.Skip(g)
		}
	}
}

// describe returns a result for people.
func describe(r confine.Result) string {
	return fmt.Sprintf("exit code %d, signal %q, limit %q, timed out %v, %v, output:\n%.2000s", r.ExitCode, r.Signal, r.Limit, r.TimedOut, r.Duration, r.Output)
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
		{"unshare of files", []uintptr{unix.SYS_UNSHARE, unix.CLONE_FILES}, unix.EPERM},
		{"close_range with files of its own", []uintptr{unix.SYS_CLOSE_RANGE, 1000, 1000, unix.CLOSE_RANGE_UNSHARE}, unix.EPERM},
		{"setns", []uintptr{unix.SYS_SETNS, 0, 0}, unix.EPERM},
		{"mknodat block", []uintptr{unix.SYS_MKNODAT, ^uintptr(99), text, unix.S_IFBLK | 0o600, 7 << 8}, unix.EPERM},
		{"mknodat char", []uintptr{unix.SYS_MKNODAT, ^uintptr(99), text, unix.S_IFCHR | 0o600, 1<<8 | 3}, unix.EPERM},
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

// allocate uses 100 MB and waits.
func allocate() {
	b := make([]byte, 100<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	time.Sleep(time.Minute)
	runtime.KeepAlive(b)
}

// share puts 500 MB into memory that no process has mapped, and waits.
func share() { take("memfd") }

// take takes 500 MB, or what it can get, in a way that a launcher might not see, and waits.
func take(what string) {
	const length = 500 << 20
	fail := func(err error) {
		if err != nil {
			fmt.Println(what, err)
			os.Exit(1)
		}
	}
	write := func(fd int) {
		for b, i := make([]byte, 1<<20), 0; i < length>>20; i++ {
			_, err := unix.Write(fd, b)
			fail(err)
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
	switch what {
	case "private":
		touch(mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON))
	case "fork":
		b := make([]byte, length/2)
		touch(b)
		for range 5 {
			if pid, _, _ := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 {
				for {
					syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
				}
			}
		}
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
		if what != "memfd" {
			send(fd)
		}
	case "page tables": // one page of each, of a mapping that is no data
		const large = 1 << 40
		b, err := unix.Mmap(-1, 0, large, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		fail(err)
		fail(unix.Madvise(b, unix.MADV_NOHUGEPAGE))
		sum := byte(0)
		for i := 0; i < length/4096*(2<<20); i += 2 << 20 {
			sum += b[i]
		}
		runtime.KeepAlive(sum)
	case "sockets":
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

// signalLauncher sends every signal to the launcher in every way: by kill, with the code of a
// fault that is no fault, and as the owner of a socket that has data.
func signalLauncher() {
	signal.Ignore(syscall.SIGTERM)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(pair[0]), unix.F_SETOWN, 1)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(pair[0]), unix.F_SETFL, unix.O_ASYNC)
	}
	for s := syscall.Signal(1); err == nil && s <= 64; s++ {
		_ = syscall.Kill(1, s)
		queued := [32]int32{int32(s), 0, -1} // SI_QUEUE
		_, _, _ = syscall.RawSyscall(unix.SYS_RT_SIGQUEUEINFO, 1, uintptr(s), uintptr(unsafe.Pointer(&queued)))
		if _, err = unix.FcntlInt(uintptr(pair[0]), unix.F_SETSIG, int(s)); err == nil {
			_, err = unix.Write(pair[1], []byte{1})
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	time.Sleep(100 * time.Millisecond) // all have been delivered, as far as a process can know
	os.Exit(3)
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

func TestSystemCalls(t *testing.T) {
	for name, namespaces := range map[string]bool{"namespaces": true, "no namespaces": false} {
		t.Run(name, func(t *testing.T) {
			confine.Lower(t, namespaces, 99)
			if r := execute(t, helper(t, "calls", "")); string(r.Output) != "done\n" {
				t.Errorf("not refused:\n%s", r.Output)
			}
		})
	}
}

// Whatever the kernel has, a command has no capabilities and nothing that the host inherited.
func TestPrivileges(t *testing.T) {
	inherited, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	for name, namespaces := range map[string]bool{"namespaces": true, "no namespaces": false} {
		t.Run(name, func(t *testing.T) {
			confine.Lower(t, namespaces, 99)
			r := execute(t, command(t, `grep -E "^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):" /proc/self/status; for fd in /proc/self/fd/*; do readlink $fd; done`))
			out := string(r.Output)
			for _, want := range []string{"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
				if !strings.Contains(out, want) {
					t.Errorf("%s is missing in\n%s", want, out)
				}
			}
			if strings.Contains(out, "/etc/passwd") {
				t.Errorf("an inherited file is open:\n%s", out)
			}
		})
	}
}

// A command sees no process but its own, and cannot reach those of the host by their numbers.
func TestProcessesAreAlone(t *testing.T) {
	needNamespaces(t)
	pid := strconv.Itoa(os.Getpid())
	r := execute(t, command(t, `ls /proc | grep -c "^[0-9]"; for tool in "kill -0" "renice 19" "ionice -c3 -p" "taskset -p 1" "prlimit --nofile=10:10 --pid" "chrt -i -p 0"; do $tool `+pid+` 2>/dev/null && echo "$tool works"; done; exit 0`))
	count, rest, _ := strings.Cut(string(r.Output), "\n")
	if n, err := strconv.Atoi(count); err != nil || n > 5 || rest != "" {
		t.Errorf("%s", r.Output)
	}
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Error(err)
	}
	// The launcher can neither be read nor ended.
	r = execute(t, command(t, `cat /proc/1/environ /proc/1/maps 2>/dev/null; kill -9 1; kill -STOP 1; prlimit --pid 1 --cpu=0:0 2>/dev/null; echo on`))
	if string(r.Output) != "on\n" || r.ExitCode != 0 {
		t.Errorf("%s", describe(r))
	}
}

// Modes, times and attributes of files outside cannot be changed, names not be seen, and sockets
// not be connected to.
func TestFilesOutsideDoNotExist(t *testing.T) {
	needNamespaces(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "token")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	parent := filepath.Dir(outside)
	mode, err := os.Stat(parent)
	if err != nil {
		t.Fatal(err)
	}
	r := execute(t, command(t, fmt.Sprintf(`chmod 644 %[1]s; chmod 777 %[2]s; touch -d 2001-01-01 %[1]s; setfattr -n user.x -v y %[1]s; ls %[2]s; readlink -e %[1]s; stat -c %%n %[1]s; exit 0`, secret, parent)))
	if strings.Contains(string(r.Output), "token\n") {
		t.Errorf("it is seen:\n%s", r.Output)
	}
	after, err := os.Stat(secret)
	if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file was changed: %v %v", after, err)
	}
	if now, err := os.Stat(parent); err != nil || now.Mode() != mode.Mode() {
		t.Errorf("the folder above was changed: %v %v", now, err)
	}

	// A socket at a path that does not exist for the command, one below a folder that it may
	// read, and an abstract one.
	readable := t.TempDir()
	paths := []string{filepath.Join(outside, "s"), filepath.Join(readable, "s")}
	for _, path := range paths {
		listenAt(t, path)
	}
	abstract := "@confine-test-" + strconv.Itoa(os.Getpid())
	listenAt(t, abstract)
	scoped := true
	for _, g := range confine.Gaps() {
		scoped = scoped && g.Wall != confine.WallLandlock
	}
	if scoped {
		paths = append(paths, abstract)
	}
	c := helper(t, "connect", strings.Join(paths, " "))
	c.Read = []string{readable}
	if r := execute(t, c); strings.Contains(string(r.Output), "answers") || !strings.Contains(string(r.Output), "refused") {
		t.Errorf("%s", r.Output)
	}
}

// Services of the machine and of the user, which execute programs, sign, or keep secrets for
// their clients, cannot be reached: no socket of them exists, nor a folder from which
// they start programs.
func TestServicesOfTheMachine(t *testing.T) {
	needNamespaces(t)
	home := t.TempDir()
	session := filepath.Join(home, "run") // as /run/user/1000
	paths := []string{
		filepath.Join(home, ".gnupg/S.gpg-agent"), filepath.Join(home, ".docker/run/docker.sock"),
		filepath.Join(session, "bus"), filepath.Join(session, "systemd/private"), filepath.Join(session, "gnupg/S.gpg-agent"), filepath.Join(session, "podman/podman.sock"),
	}
	if os.Geteuid() == 0 { // as /run/dbus/system_bus_socket, /run/docker.sock and their like
		dir, err := os.MkdirTemp("/run", "confine-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		paths = append(paths, filepath.Join(dir, "docker.sock"))
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		listenAt(t, path)
	}
	t.Setenv("HOME", home)
	variables := []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST", "SSH_AUTH_SOCK", "GPG_AGENT_INFO"}
	for _, name := range variables {
		t.Setenv(name, session)
	}
	if r := execute(t, helper(t, "connect", strings.Join(paths, " "))); string(r.Output) != strings.Repeat("refused\n", len(paths)) {
		t.Errorf("%s", r.Output)
	}
	r := execute(t, command(t, `ls -d /run/* | grep -vx -e /run/layers -e /run/systemd; ls /run/systemd 2>/dev/null | grep -vx resolve
		ls -d /var/spool /var/run/* /etc/cron* /etc/at.* /etc/systemd /etc/dbus-1 /etc/ssh ~/.config/systemd ~/.config/autostart 2>/dev/null
		printenv `+strings.Join(variables, " ")+`
		for tool in "systemd-run true" "systemd-run --user true" "crontab -l" "docker ps" "podman --remote ps" "dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames" "loginctl"; do
			$tool >/dev/null 2>&1 && echo "$tool works"
		done
		echo true | at now 2>/dev/null && echo "at works"
		exit 0`))
	if len(r.Output) > 0 || r.ExitCode != 0 {
		t.Errorf("%s", describe(r))
	}
}

// What a command may read is listed. Credentials below toolchains, other files of /etc, the home,
// /run and hidden folders do not exist, also where they lie below what it may read.
func TestReadableIsListed(t *testing.T) {
	needNamespaces(t)
	home := t.TempDir()
	write := func(path string) string {
		t.Helper()
		full := filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("content of "+path), 0o644); err != nil {
			t.Fatal(err)
		}
		return full
	}
	secrets := []string{write(".deno/credentials.json"), write(".local/share/uv/credentials/x"), write(".dotnet/corefx/key"), write(".ssh/id"), write(".npmrc"), write("project/state/token")}
	tools := []string{write(".deno/bin/deno"), write(".pyenv/versions/3/bin/python"), write("project/lib/file"), write("tools/bin/tool")}
	t.Setenv("HOME", home)
	t.Setenv("PATH", os.Getenv("PATH")+":"+home+":"+filepath.Join(home, "tools/bin"))
	c := command(t, "cat "+strings.Join(append(secrets, tools...), " ")+" 2>/dev/null; ls -A "+home+"; cat /etc/shadow /etc/sentinel/deploy.key; ls /run /etc")
	c.Read, c.Hide = []string{filepath.Join(home, "project")}, []string{filepath.Join(home, "project/state")}
	r := execute(t, c)
	out := string(r.Output)
	for _, path := range secrets {
		if name, _ := filepath.Rel(home, path); strings.Contains(out, "content of "+name) {
			t.Errorf("%s is read", path)
		}
	}
	for _, path := range tools {
		if name, _ := filepath.Rel(home, path); !strings.Contains(out, "content of "+name) {
			t.Errorf("%s is not read", path)
		}
	}
	for _, name := range []string{".ssh\n", ".npmrc\n", "shadow\n", "sudoers\n", "docker.sock", "dbus\n", "root:"} {
		if strings.Contains(out, name) {
			t.Errorf("%q exists:\n%s", name, out)
		}
	}
	if !strings.Contains(out, "passwd\n") {
		t.Errorf("/etc/passwd is missing:\n%s", out)
	}
}

// A folder of PATH that leads by a link below the home or to what is hidden is not readable: a
// command that may write the folder above it would choose what the next one reads. One in the home
// is, also where the home is a link.
func TestPathByLinks(t *testing.T) {
	needNamespaces(t)
	real, dir := t.TempDir(), t.TempDir()
	home := filepath.Join(dir, "home")
	state := filepath.Join(dir, "state")
	for _, path := range []string{filepath.Join(real, ".ssh"), filepath.Join(real, "bin"), state, filepath.Join(dir, "tool")} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "file"), []byte(filepath.Base(path)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"home": real, "to-home": home + "/.ssh", "to-state": state, "to-tool": filepath.Join(dir, "tool")}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", strings.Join([]string{os.Getenv("PATH"), dir + "/to-home", dir + "/to-state", dir + "/to-tool", home + "/bin"}, ":"))
	c := command(t, fmt.Sprintf("cd %s; cat to-home/file home/.ssh/file to-state/file state/file to-tool/file home/bin/file 2>/dev/null", dir))
	c.Hide = []string{state}
	if r := execute(t, c); string(r.Output) != "tool\nbin\n" {
		t.Errorf("%s", describe(r))
	}
}

// The superuser owns files of /proc about the whole machine, and reads them without a capability.
func TestMachineIsNotShown(t *testing.T) {
	needNamespaces(t)
	r := execute(t, command(t, `cd /proc; for f in keys key-users iomem kpageflags kpagecount kpagecgroup slabinfo vmallocinfo timer_list pagetypeinfo kmsg kcore; do head -c 1 $f 2>/dev/null | grep -q . && echo "$f is read"; done; cat uptime >/dev/null && echo on`))
	if string(r.Output) != "on\n" {
		t.Errorf("%s", describe(r))
	}
}

// Of the sockets of the machine, which another command may have made by the thousand, a launcher
// hides those below what its command sees, by their real paths.
func TestSocketsBelow(t *testing.T) {
	needNamespaces(t)
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "a"), filepath.Join(link, "b"), filepath.Join(t.TempDir(), "c")} {
		listenAt(t, path)
	}
	found := confine.Sockets(dir)
	slices.Sort(found)
	if want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}

// A cache of the user is warm for a command, and not changed by it.
func TestCaches(t *testing.T) {
	needNamespaces(t)
	user := t.TempDir()
	if err := os.WriteFile(filepath.Join(user, "entry"), []byte("warm"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", user)
	c := command(t, `cat ~/.cache/go-build/entry; echo poison > ~/.cache/go-build/entry && echo poison > ~/.cache/go-build/new && cat ~/.cache/go-build/new; ls "`+user+`"`)
	r := execute(t, c)
	if !strings.HasPrefix(string(r.Output), "warmpoison\n") {
		t.Errorf("%s", r.Output)
	}
	if text, _ := os.ReadFile(filepath.Join(user, "entry")); string(text) != "warm" {
		t.Errorf("the cache of the user was changed: %s", text)
	}
	if _, err := os.Stat(filepath.Join(user, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cache of the user has a new entry: %v", err)
	}
	// The next command with the same home has what the first one added.
	c.Shell = "cat ~/.cache/go-build/new"
	if r := execute(t, c); string(r.Output) != "poison\n" {
		t.Errorf("%s", r.Output)
	}
}

// chains starts processes that each start another and end, without end.
const chains = `h() { (h) & }; i=0; while [ $i -lt 50 ]; do (h) & i=$((i+1)); done; `

// Processes that start others without end cannot outlive their command, by a time limit or by its
// end.
func TestForksWithoutEnd(t *testing.T) {
	needNamespaces(t)
	c := command(t, chains+"sleep 600")
	c.Timeout = time.Second
	if r := execute(t, c); !r.TimedOut || r.Duration > time.Minute {
		t.Errorf("%s", describe(r))
	}
	if r := execute(t, command(t, chains+"exit 3")); r.ExitCode != 3 || r.Duration > time.Minute {
		t.Errorf("%s", describe(r))
	}
}

// taking returns a command that takes more than its limits of memory and disk allow, with the user
// having no caches.
func taking(t *testing.T, how, what string) confine.Command {
	t.Helper()
	for _, name := range []string{"HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "CARGO_HOME"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	c := helper(t, "", "")
	c.Shell = fmt.Sprintf("%s='%s' ./helper '%s'", helperVariable, how, what)
	c.Limits.Memory, c.Limits.Disk = 300<<20, 300<<20
	if strings.HasPrefix(what, "deleted") || what == "deep" {
		c.Limits.Memory = 0
	}
	return c
}

// What others have and write is not counted as the command's.
func TestLimitsAreItsOwn(t *testing.T) {
	needNamespaces(t)
	t.Setenv("GOCACHE", t.TempDir())
	c := command(t, "touch begun; while ! [ -e taken ]; do sleep 0.02; done; sleep 1; echo fine")
	c.Limits.Memory, c.Limits.Disk = 200<<20, 200<<20
	p, err := runner(t).Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for {
		if _, err := os.Stat(filepath.Join(c.Root, "begun")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	memory, err := unix.MemfdCreate("of another", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(memory)
	file, err := os.Create(filepath.Join(filepath.Dir(c.Root), "of another")) // on the same disk
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for b, i := make([]byte, 1<<20), 0; i < 400; i++ {
		if _, err := unix.Write(memory, b); err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(c.Root, "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(); err != nil || string(r.Output) != "fine\n" {
		t.Errorf("%v %s", err, describe(r))
	}
}

// Limits hold for all processes of a command together.
func TestLimitsOfTheWhole(t *testing.T) {
	needNamespaces(t)
	t.Run("processes", func(t *testing.T) {
		c := command(t, `i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; sleep 600`)
		c.Limits.Processes = 50
		r := execute(t, c)
		// The kernel's limit of a user namespace comes first, but not for the superuser.
		if r.Limit == "" && !strings.Contains(string(r.Output), "fork") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("memory", func(t *testing.T) {
		c := helper(t, "memory", "& for i in 1 2 3 4; do "+helperVariable+"=memory ./helper & done; wait")
		c.Limits.Memory = 350 << 20 // more than one of them has
		if r := execute(t, c); !strings.Contains(r.Limit, "memory") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("shared memory", func(t *testing.T) {
		c := helper(t, "shared", "")
		c.Limits.Memory = 300 << 20
		if r := execute(t, c); !strings.Contains(r.Limit, "memory") {
			t.Errorf("%s", describe(r))
		}
	})
	for _, what := range []string{"private", "shared", "memfd on its way", "page tables", "sockets"} {
		t.Run(what, func(t *testing.T) {
			if r := execute(t, taking(t, "take", what)); !strings.Contains(r.Limit, "memory") {
				t.Errorf("%s", describe(r))
			}
		})
	}
	t.Run("shared since a fork", func(t *testing.T) {
		if raceEnabled {
			t.Skip("a process of the race detector cannot fork within the limit of memory")
		}
		if r := execute(t, taking(t, "take", "fork")); string(r.Output) != "fine\n" {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("memory without a first thread", func(t *testing.T) {
		if r := execute(t, taking(t, "take without leader", "private")); !strings.Contains(r.Limit, "memory") {
			t.Errorf("%s", describe(r))
		}
	})
	for _, what := range []string{"deep", "deleted on its way", "deleted and mapped"} {
		t.Run(what, func(t *testing.T) {
			if r := execute(t, taking(t, "take", what)); !strings.Contains(r.Limit, "files") {
				t.Errorf("%s", describe(r))
			}
		})
	}
	t.Run("deleted without a first thread", func(t *testing.T) {
		if r := execute(t, taking(t, "take without leader", "deleted")); !strings.Contains(r.Limit, "files") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("two disks", func(t *testing.T) {
		other := t.TempDir()
		if err := unix.Mount("tmpfs", other, "tmpfs", 0, ""); err != nil {
			t.Skip("another file system: ", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(other, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		c := taking(t, "take", "deleted")
		c.Shell = "cd ~ && " + strings.Replace(c.Shell, "./helper", c.Root+"/helper", 1)
		c.Read, c.Root, c.Dir = []string{c.Root}, other, other
		if r := execute(t, c); !strings.Contains(r.Limit, "files") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("sessions", func(t *testing.T) {
		if _, err := exec.LookPath("setsid"); err != nil {
			t.Skip("setsid is not on this machine")
		}
		r := execute(t, command(t, `i=0; while [ $i -lt 250 ]; do setsid sleep 600 & i=$((i+1)); done; sleep 600`))
		if !strings.Contains(r.Limit, "sessions") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("caches", func(t *testing.T) {
		t.Setenv("GOCACHE", t.TempDir())
		c := command(t, `i=0; while :; do head -c 1000000 /dev/zero > ~/.cache/go-build/f$i; i=$((i+1)); sleep 0.01; done`)
		c.Limits.Disk = 20 << 20
		if r := execute(t, c); !strings.Contains(r.Limit, "20 MiB") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("deleted files", func(t *testing.T) {
		c := command(t, `exec 5>f; rm f; i=0; while :; do head -c 1000000 /dev/zero >&5; sleep 0.01; done`)
		c.Limits.Disk = 20 << 20
		if r := execute(t, c); !strings.Contains(r.Limit, "20 MiB") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("disk", func(t *testing.T) {
		c := command(t, `i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); sleep 0.01; done`)
		c.Limits.Disk = 20 << 20
		if r := execute(t, c); !strings.Contains(r.Limit, "20 MiB") {
			t.Errorf("%s", describe(r))
		}
	})
}

// Signals from the command do not end the launcher; the exit code is that of the command.
func TestLauncherStays(t *testing.T) {
	needNamespaces(t)
	c := helper(t, "signals", "")
	c.Shell = "trap '' TERM; " + c.Shell // the launcher sends it on
	if r := execute(t, c); r.ExitCode != 3 || r.Signal != "" || r.Limit != "" || len(r.Output) > 0 {
		t.Errorf("%s", describe(r))
	}
}

// The launcher does not have the limit of processes, without which the Go runtime may end it, and
// shares no session with the command: the kernel divides the processors by session.
func TestLauncherIsApart(t *testing.T) {
	needNamespaces(t)
	c := command(t, `for p in 1 self; do grep "Max processes" /proc/$p/limits; cut -d" " -f6 /proc/$p/stat; done`)
	c.Limits.Processes = 77
	var words []string
	r := execute(t, c)
	for line := range strings.Lines(string(r.Output)) {
		fields := strings.Fields(line)
		words = append(words, fields[min(2, len(fields)-1)])
	}
	if len(words) != 4 || words[0] == "77" || words[2] != "77" || words[1] == words[3] {
		t.Errorf("%q %s", words, describe(r))
	}
}

// A launcher that ends while the command runs is no fault of the machine.
func TestLauncherIsEnded(t *testing.T) {
	needNamespaces(t)
	c := command(t, "")
	c.Shell = "touch " + c.Root + "/begun; sleep 600" // no other has this line
	p, err := runner(t).Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for {
		if _, err := os.Stat(filepath.Join(c.Root, "begun")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	// From outside, as the kernel does when memory is used up.
	if err := syscall.Kill(launcherOf(t, c), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Wait(); err != nil || !strings.Contains(r.Limit, "launcher") || r.ExitCode == 0 {
		t.Errorf("%v %s", err, describe(r))
	}
}

// launcherOf returns the parent of the shell that executes a command.
func launcherOf(t *testing.T, c confine.Command) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if text, err := os.ReadFile(path); err != nil || string(text) != "sh\x00-c\x00"+c.Shell+"\x00" {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		return parent
	}
	t.Fatal("there is no launcher")
	return 0
}

// A command cannot change devices, which are those of the host.
func TestDevices(t *testing.T) {
	needNamespaces(t)
	before, err := os.Stat("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	r := execute(t, command(t, `chmod 0600 /dev/null; touch -d 2001-01-01 /dev/zero; perl -e 'chmod(0600, *STDIN)'; echo x > /dev/null && head -c 1 /dev/zero > /dev/null && echo written`))
	after, err := os.Stat("/dev/null")
	if err != nil || after.Mode() != before.Mode() || !strings.Contains(string(r.Output), "written\n") {
		t.Errorf("%v %v %s", after.Mode(), err, describe(r))
	}
}

// Links that a command leaves in its home do not lead the launcher of the next one out of it.
func TestLinksOfEarlierCommands(t *testing.T) {
	needNamespaces(t)
	home, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{".npm/_cacache", ".cache/pip"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	c := command(t, `mv ~/.npm ~/x; ln -s `+outside+` ~/.npm; ln -s ../../../../../../../../../../proc ~/y; mv ~/.cache ~/z; ln -s ../../../../../../../../../../../proc ~/.cache; rm -rf /tmp/*; ln -s `+outside+` /tmp/`+strings.Split(outside, "/")[2])
	execute(t, c)
	c.Shell = "ls /proc/1 >/dev/null && echo on"
	if r := execute(t, c); string(r.Output) != "on\n" {
		t.Errorf("%s", describe(r))
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("made outside: %v %v", entries, err)
	}
}

// What cannot be hidden or protected without namespaces is not executed.
func TestProtectNeedsNamespaces(t *testing.T) {
	c := command(t, "echo executed")
	git := filepath.Join(c.Root, ".git")
	if err := os.Mkdir(git, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Protect = []string{git}
	confine.Lower(t, false, 99)
	if r, err := runner(t).Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), ".git cannot be kept") {
		t.Errorf("%s %v", describe(r), err)
	}
}

// An offline command has a loopback interface of its own, which the host reaches by the launcher
// alone.
func TestOffline(t *testing.T) {
	needNamespaces(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv(helperVariable, "")
	c := command(t, "exec 3<>/dev/tcp/127.0.0.1/"+strconv.Itoa(l.Addr().(*net.TCPAddr).Port)+" && echo connected")
	c.Argv = []string{"/bin/bash", "-c", c.Shell}
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip(err)
	}
	if r := execute(t, c); !strings.Contains(string(r.Output), "connected") {
		t.Errorf("open network: %s", r.Output)
	}
	c.Offline = true
	if r := execute(t, c); strings.Contains(string(r.Output), "connected") {
		t.Errorf("closed network: %s", r.Output)
	}
}

// The host reaches a service of an offline command.
func TestDialOffline(t *testing.T) {
	needNamespaces(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("python3 is not on this machine")
	}
	c := command(t, "exec /usr/bin/python3 -m http.server --bind 127.0.0.1 8123")
	c.Offline = true
	p, err := runner(t).Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if err := os.WriteFile(filepath.Join(c.Root, "file"), []byte("served"), 0o644); err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := p.Dial(t.Context(), "8123")
		if err == nil {
			defer conn.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/file", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Close = true
			if err := request.Write(conn); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(conn)
			if err != nil || !strings.HasSuffix(string(text), "served") {
				t.Errorf("%q %v", text, err)
			}
			return
		}
		select {
		case <-p.Done():
			t.Fatal(p.Wait())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A wall that is required, and that the machine does not have, refuses the command.
func TestRequire(t *testing.T) {
	confine.Lower(t, false, 0)
	c := command(t, "echo executed")
	for _, wall := range []string{confine.WallNamespaces, confine.WallLandlock} {
		c.Require = []string{wall}
		if r, err := runner(t).Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), wall) {
			t.Errorf("%s: %+v %v", wall, r, err)
		}
	}
	c.Require = []string{confine.WallSeccomp}
	if r := execute(t, c); string(r.Output) != "executed\n" || len(r.Gaps) == 0 {
		t.Errorf("%s", describe(r))
	}
	c.Offline = true
	if _, err := runner(t).Run(t.Context(), c); err == nil {
		t.Error("an open network")
	}
}

// Older kernels have fewer walls. Those that they have hold.
func TestOlderKernels(t *testing.T) {
	for _, k := range []struct {
		namespaces bool
		landlock   int
	}{{true, 0}, {true, 1}, {false, 1}, {false, 2}, {false, 3}, {false, 5}, {false, 6}, {false, 99}} {
		t.Run(fmt.Sprintf("namespaces %v landlock %d", k.namespaces, k.landlock), func(t *testing.T) {
			confine.Lower(t, k.namespaces, k.landlock)
			TestWritesStayInside(t)
			if k.namespaces || k.landlock >= 2 {
				TestMovesBetweenFolders(t)
			}
			TestEnvironment(t)
			TestTreeIsEnded(t)
		})
	}
}
