package confine_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

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

// A folder of PATH that is a link is not readable, unless it leads to where the superuser installs
// programs: a command that may write the folder above it would choose what the next one reads. One
// in the home is, also where the home is a link.
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
	links := map[string]string{"home": real, "to-home": home + "/.ssh", "to-state": state, "to-tool": filepath.Join(dir, "tool"), "to-system": "/usr/bin"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", strings.Join([]string{os.Getenv("PATH"), dir + "/to-home", dir + "/to-state", dir + "/to-tool", dir + "/to-system", home + "/bin"}, ":"))
	c := command(t, fmt.Sprintf("cd %s; cat to-home/file home/.ssh/file to-state/file state/file to-tool/file home/bin/file 2>/dev/null", dir))
	c.Hide = []string{state}
	if r := execute(t, c); string(r.Output) != "bin\n" {
		t.Errorf("%s", describe(r))
	}
}

// A cache that a variable names is none if it leads somewhere by a link: the folder may be in a
// workspace.
func TestCacheByLink(t *testing.T) {
	needNamespaces(t)
	elsewhere, dir := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(elsewhere, "key"), []byte("key\n"), 0o644), os.Symlink(elsewhere, filepath.Join(dir, "cache"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", filepath.Join(dir, "cache"))
	if r := execute(t, command(t, "cat ~/.cache/go-build/key 2>/dev/null; echo done")); string(r.Output) != "done\n" {
		t.Errorf("%s", describe(r))
	}
	t.Setenv("GOCACHE", elsewhere)
	if r := execute(t, command(t, "cat ~/.cache/go-build/key; echo done")); string(r.Output) != "key\ndone\n" {
		t.Errorf("%s", describe(r))
	}
}

// A cache that a variable names is none if it has a hidden folder in it.
func TestCacheWithHiddenFolder(t *testing.T) {
	needNamespaces(t)
	cache := t.TempDir()
	state := filepath.Join(cache, "sentinel")
	if err := errors.Join(os.Mkdir(state, 0o755), os.WriteFile(filepath.Join(state, "key"), []byte("key\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", cache)
	c := command(t, "cat ~/.cache/go-build/sentinel/key 2>/dev/null; echo done")
	c.Hide = []string{state}
	if r := execute(t, c); string(r.Output) != "done\n" {
		t.Errorf("%s", describe(r))
	}
}

// Where a command has no IPC namespace, it reaches nothing that processes of the user share by System V
// and POSIX calls; where it has one, what it makes there is not seen outside.
func TestSharedMemoryIsItsOwn(t *testing.T) {
	refused := fmt.Sprintf("shmget %[1]d\nsemget %[1]d\nmsgget %[1]d\nmq_open %[1]d\nshmctl %[1]d\n", int(syscall.EPERM))
	t.Run("no namespaces", func(t *testing.T) {
		confine.Lower(t, false, 99)
		if r := execute(t, helper(t, "ipc", "")); string(r.Output) != refused {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("namespaces", func(t *testing.T) {
		needNamespaces(t)
		if r := execute(t, helper(t, "ipc", "")); !strings.HasPrefix(string(r.Output), "shmget 0\nsemget 0\nmsgget 0\n") {
			t.Errorf("%s", describe(r))
		}
		if text, err := os.ReadFile("/proc/sysvipc/shm"); err == nil && strings.Contains(string(text), strconv.Itoa(0x53454e54)) {
			t.Errorf("a segment of the command is seen outside:\n%s", text)
		}
	})
}

// A command that takes more than its share of the user's watches of epoll is ended: the host accepts no
// connection when they are used up.
func TestEpollWatchesAreLeft(t *testing.T) {
	needNamespaces(t)
	// A small share, and commands that make a bounded number: these are the watches of all programs of the
	// user who executes the tests.
	const most = 100_000
	confine.ShareEpoll(t, most)
	needFiles(t, 16384)
	// Those on their way through a socket are in no table: what all of the kernel has grown by is the
	// ground to end the command, at twice the share, and other programs free memory meanwhile.
	for name, arguments := range map[string]string{"in tables": strconv.Itoa(2 * most), "hidden": strconv.Itoa(6*most) + " hide"} {
		t.Run(name, func(t *testing.T) {
			c := helper(t, "epoll", arguments)
			c.Limits.Files, c.Timeout = 16384, 5*time.Minute
			r := execute(t, c)
			if want := fmt.Sprintf("more than %d watches of epoll", most); !strings.Contains(r.Limit, want) {
				t.Errorf("want %s: %s", want, describe(r))
			}
		})
	}
}

// A command that opens more than its share of the files that the machine can have open is ended: those are
// bounded for all users together.
func TestOpenFilesAreLeft(t *testing.T) {
	needNamespaces(t)
	text, err := os.ReadFile("/proc/sys/fs/file-max")
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	const ofProcess = 1 << 13
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max < 2*ofProcess {
		t.Skip("a process cannot open many files: ", limit.Max, err)
	}
	if most > 8_000_000 {
		t.Skipf("the machine can have %d files open, too many for a test", most)
	}
	c := helper(t, "files", strconv.Itoa(most/8/ofProcess+2))
	c.Limits.Files = ofProcess
	r := execute(t, c)
	if want := fmt.Sprintf("more than %d open files", most/8); !strings.Contains(r.Limit, want) {
		t.Errorf("want %s: %s", want, describe(r))
	}
}

// A command cannot use up the inotify instances and watches of its user, which the host needs for
// triggers.
func TestWatchesAreLeft(t *testing.T) {
	needNamespaces(t)
	number := func(text []byte) int {
		t.Helper()
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	read := func(path string) []byte {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Skip("the kernel does not count inotify by user namespace: ", err)
		}
		return text
	}
	instances, watches := number(read("/proc/sys/fs/inotify/max_user_instances")), number(read("/proc/sys/fs/inotify/max_user_watches"))
	read("/proc/sys/user/max_inotify_instances")
	r := execute(t, command(t, "cat /proc/sys/user/max_inotify_watches; echo 1000000 > /proc/sys/user/max_inotify_watches && echo raised; exit 0"))
	first, rest, _ := strings.Cut(string(r.Output), "\n")
	if number([]byte(first)) > watches/8 || strings.Contains(rest, "raised") {
		t.Errorf("%d watches of the user: %s", watches, describe(r))
	}
	p, err := runner(t).Begin(t.Context(), helper(t, "watches", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for !strings.Contains(string(p.Output()), "instances") {
		select {
		case <-p.Done():
			t.Fatal(p.Wait())
		case <-time.After(10 * time.Millisecond):
		}
	}
	count, _, _ := strings.Cut(string(p.Output()), " ")
	if number([]byte(count)) > instances/8 {
		t.Errorf("%d instances of the user: the command has %s", instances, count)
	}
}

// A command has at most half of the open files that the host may have: the kernel counts those that were
// sent and not received by user, against the limit of the sender, and the host sends files to start
// commands.
func TestFilesOnTheirWayAreLeft(t *testing.T) {
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
		t.Fatal(err)
	}
	for name, namespaces := range map[string]bool{"namespaces": true, "no namespaces": false} {
		t.Run(name, func(t *testing.T) {
			confine.Lower(t, namespaces, 99)
			c := command(t, "ulimit -Hn")
			c.Limits.Files = have.Max * 2
			r := execute(t, c)
			if n, err := strconv.ParseUint(strings.TrimSpace(string(r.Output)), 10, 64); err != nil || n > have.Max/2 {
				t.Errorf("%d files of the host: %s", have.Max, describe(r))
			}
		})
	}
}

// Without namespaces a command learns which files there are, by stat, which Landlock does not know. What
// the verdict and doctor show says so.
// Extended attributes of files of the user, such as access lists, are not changed. In namespaces the
// files do not exist.
func TestAttributes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(file, "user.test", []byte("x"), 0); err != nil {
		t.Skipf("no extended attributes on this file system: %v", err)
	}
	for name, namespaces := range map[string]bool{"namespaces": true, "no namespaces": false} {
		t.Run(name, func(t *testing.T) {
			confine.Lower(t, namespaces, 99)
			r := execute(t, helper(t, "attribute", "'"+file+"'"))
			if _, err := unix.Getxattr(file, "user.sentinel", make([]byte, 8)); err == nil || string(r.Output) == "<nil>\n" {
				t.Errorf("the attribute was set: %v, %s", err, describe(r))
			}
		})
	}
}

func TestNamesByStat(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := "stat -c 'size %s' '" + secret + "' 2>/dev/null; exit 0"
	for name, namespaces := range map[string]bool{"namespaces": true, "no namespaces": false} {
		t.Run(name, func(t *testing.T) {
			confine.Lower(t, namespaces, 99)
			r := execute(t, command(t, line))
			named := slices.ContainsFunc(r.Gaps, func(g confine.Gap) bool {
				return g.Wall == confine.WallNamespaces && strings.Contains(g.Text, "names, sizes and times of all files")
			})
			if seen := strings.Contains(string(r.Output), "size 5"); seen == namespaces || named == namespaces {
				t.Errorf("seen %v, named %v: %v %s", seen, named, r.Gaps, describe(r))
			}
		})
	}
}

// The superuser owns files of /proc about the whole machine, and reads them without a capability.
func TestMachineIsNotShown(t *testing.T) {
	needNamespaces(t)
	r := execute(t, command(t, `cd /proc; for f in keys key-users iomem kpageflags kpagecount kpagecgroup slabinfo vmallocinfo timer_list pagetypeinfo kmsg kcore sys/net/ipv4/tcp_fastopen_key sys/net/ipv6/conf/*/stable_secret; do head -c 1 $f 2>/dev/null | grep -q . && echo "$f is read"; done; cat uptime >/dev/null && echo on`))
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
	// What follows a line end in the path of a socket is no socket.
	short, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	file := filepath.Join(short, "f")
	path := filepath.Join(short, "0\n", file)
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
		t.Fatal(err)
	}
	listenAt(t, path)
	if found := confine.Sockets(short); slices.Contains(found, file) {
		t.Errorf("%q, a file, is taken for a socket", file)
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
	for _, wall := range []string{confine.WallNamespaces, confine.WallLandlock, confine.WallCgroup} {
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
