package confine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

// needCgroup skips a test where commands have no cgroup.
func needCgroup(t *testing.T) {
	t.Helper()
	for _, g := range confine.Gaps() {
		if g.Wall == confine.WallCgroup {
			t.Skip(g)
		}
	}
}

// The kernel counts what no look sees, and what is hidden from looks.
func TestCgroupBoundsMemory(t *testing.T) {
	needCgroup(t)
	if raceEnabled {
		t.Skip("programs of the race detector have much memory of their own")
	}
	for _, what := range []string{
		"private", "shared", "memfd on its way", "memfd in a call", "memfd in a message that waits", "shared with one page mapped",
		"page tables",
		"sockets", "sockets in poll", "semaphores", "semaphores to undo", "mappings", "messages", "connections of Unix sockets",
		"executed", "ending", "folios in pipes",
	} {
		t.Run(what, func(t *testing.T) {
			c := taking(t, "take", what)
			c.Limits.Disk = 0
			r := execute(t, c)
			if what == "mappings" && strings.Contains(r.Limit, "epoll") {
				return // threads that are long in a call may have watches of epoll as well
			}
			if r.Limit != "its processes have more than 300 MiB of memory" {
				t.Errorf("%s", describe(r))
			}
		})
	}
	t.Run("pipes", func(t *testing.T) {
		needFiles(t, 4096)
		c := taking(t, "take", "pipes")
		c.Limits.Memory = 160 << 20
		if r := execute(t, c); r.Limit != "its processes have more than 160 MiB of memory" {
			t.Errorf("%s", describe(r))
		}
	})
}

// Files of a temporary file system belong to no process. So the kernel ends the largest process, which is the launcher.
func TestCgroupEndsTheLauncher(t *testing.T) {
	needCgroup(t)
	c := command(t, "while :; do head -c 4000000 /dev/zero || exit; done > /dev/shm/large")
	c.Limits.Memory = 100 << 20
	r := execute(t, c)
	if r.Limit != "its processes have more than 100 MiB of memory" || r.ExitCode != 128+int(unix.SIGKILL) {
		t.Errorf("%s", describe(r))
	}
}

// Pages of files that the kernel can write and drop are no memory of a command.
func TestCgroupLeavesThePageCache(t *testing.T) {
	needCgroup(t)
	c := command(t, "head -c 500000000 /dev/zero > large && cat large large | wc -c")
	c.Limits.Memory = 100 << 20
	if r := execute(t, c); string(r.Output) != "1000000000\n" || r.Limit != "" {
		t.Errorf("%s", describe(r))
	}
}

// A command cannot leave its cgroup or change its limits, also as the superuser.
func TestCgroupIsKept(t *testing.T) {
	needCgroup(t)
	c := command(t, `
for own in $(find /sys/fs/cgroup -type d -name 'sentinel-*'); do
	grep -qx $$ $own/cgroup.procs || continue
	for dir in $own $own/.. $own/../..; do
		(echo $$ > $dir/cgroup.procs) 2>/dev/null && echo "moved to $dir"
		mkdir $dir/more 2>/dev/null && echo "made $dir/more"
	done
	for limit in memory.max memory.limit_in_bytes memory.memsw.limit_in_bytes pids.max; do
		[ -e $own/$limit ] || continue
		(echo 1000000000000 > $own/$limit) 2>/dev/null && echo "wrote $own/$limit"
		echo $limit $(cat $own/$limit)
	done
done
mount -o remount,rw /sys/fs/cgroup 2>/dev/null && echo remounted
ls -l /proc/self/fd | grep cgroup
echo done`)
	c.Limits.Memory, c.Limits.Processes = 300<<20, 100
	text := string(execute(t, c).Output)
	found := 0
	for line := range strings.Lines(text) {
		switch limit, value, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case limit == "pids.max" && value == "116", strings.HasPrefix(limit, "memory.") && value == strconv.Itoa(332<<20):
			found++
		case limit != "done":
			t.Errorf("%s", line)
		}
	}
	if found < 2 || !strings.HasSuffix(text, "done\n") {
		t.Errorf("%s", text)
	}
}

// The kernel refuses a process too many before the launcher looks, also to the superuser.
func TestCgroupBoundsProcesses(t *testing.T) {
	needCgroup(t)
	c := taking(t, "take", "processes")
	c.Limits.Processes = 50
	r := execute(t, c)
	n, err := strconv.Atoi(strings.TrimSpace(string(r.Output)))
	if err != nil || n == 0 || n > 66 {
		t.Errorf("%s", describe(r))
	}
}

// What is in a cgroup of a command, and its own, is removed with it, as are those that a host left when it ended.
func TestCgroupIsRemoved(t *testing.T) {
	needCgroup(t)
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Skip(err)
	}
	places, err := confine.NewCgroup("/proc", confine.Limits{Memory: 1 << 30, Processes: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i, dir := range places {
		left := filepath.Join(filepath.Dir(dir), fmt.Sprintf("sentinel-%d-1", ended.Process.Pid))
		if err := errors.Join(os.Remove(dir), os.Mkdir(left, 0o755)); err != nil {
			t.Fatal(err)
		}
		places[i] = left
	}
	if r := execute(t, command(t, "sleep 600 & exit 3")); r.ExitCode != 3 {
		t.Errorf("%s", describe(r))
	}
	for _, dir := range places {
		if os.Remove(dir) == nil {
			t.Errorf("%s was left", dir)
		}
		own, err := filepath.Glob(filepath.Join(filepath.Dir(dir), fmt.Sprintf("sentinel-%d-*", os.Getpid())))
		if err != nil || len(own) > 0 {
			t.Errorf("%q are left, %v", own, err)
		}
	}
}

// TestCgroupOfVersion2 finds the place for a cgroup in faked trees.
func TestCgroupOfVersion2(t *testing.T) {
	const mount = "30 23 0:26 / AT/c rw - cgroup2 cgroup2 rw\n"
	for name, test := range map[string]struct {
		cgroup, mount string
		files         map[string]string // of the tree: what the folders give
		want, given   string            // parent, and what it gives then; "" for none
	}{
		"a delegated unit": {
			"0::/system.slice/sentinel.service/host\n", mount,
			map[string]string{"system.slice/sentinel.service": "", "system.slice": "cpu memory pids"},
			"system.slice/sentinel.service", "+memory +pids",
		},
		"a slice of a user": {
			"0::/user.slice/app.slice/a.scope\n", mount,
			map[string]string{"user.slice/app.slice": "cpu memory pids"}, "user.slice/app.slice", "cpu memory pids",
		},
		"the nearest one gives nothing": {
			"0::/a/b/c\n", mount, map[string]string{"a": "memory pids"}, "a", "memory pids",
		},
		"the root of a container": {"0::/\n", mount, map[string]string{".": "memory pids"}, "", ""},
		"not mounted":             {"0::/a/b\n", "", map[string]string{"a": "memory pids"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			write := func(path, text string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write(at+"/proc/self/cgroup", test.cgroup)
			write(at+"/proc/self/mountinfo", strings.ReplaceAll(test.mount, "AT", at))
			if err := os.MkdirAll(filepath.Join(at, "c", strings.TrimSpace(test.cgroup[3:])), 0o755); err != nil {
				t.Fatal(err)
			}
			for dir, text := range test.files {
				write(filepath.Join(at, "c", dir, "cgroup.subtree_control"), text)
			}
			folders, err := confine.NewCgroup(at+"/proc", confine.Limits{Memory: 1 << 30, Processes: 100})
			if test.want == "" {
				if err == nil {
					t.Errorf("made %q", folders)
				}
				return
			}
			if err != nil || len(folders) != 1 || filepath.Dir(folders[0]) != filepath.Join(at, "c", test.want) {
				t.Fatalf("%q %v", folders, err)
			}
			for file, want := range map[string]string{
				folders[0] + "/memory.max": strconv.Itoa(1<<30 + 32<<20), folders[0] + "/pids.max": "116",
				filepath.Dir(folders[0]) + "/cgroup.subtree_control": test.given,
			} {
				if text, err := os.ReadFile(file); err != nil || string(text) != want {
					t.Errorf("%s: %q %v", file, text, err)
				}
			}
		})
	}
}

// executeMemory executes a copy of this program that is a file of memory without a name, with more behind it.
func executeMemory(size int, fail func(error)) {
	program, err := os.ReadFile("/proc/self/exe")
	fail(err)
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	fail(err)
	for _, part := range [][]byte{program, make([]byte, size)} {
		for len(part) > 0 {
			n, err := unix.Write(fd, part)
			fail(err)
			part = part[n:]
		}
	}
	cmd := exec.Command("/proc/self/fd/3", "nothing")
	cmd.Env = []string{helperVariable + "=take"}
	only, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)) // a program that is open for writing is not executed
	fail(err)
	fail(unix.Close(fd))
	cmd.ExtraFiles = []*os.File{only}
	fail(cmd.Start())
	fail(only.Close())
}

// fillSocketsAndEnd ends with much in sockets, and slowly beside busy processes: the kernel takes mappings before files.
func fillSocketsAndEnd(fail func(error)) {
	for n := 0; n < 60<<20; {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		fail(err)
		for written := 0; err == nil; written, err = unix.Write(pair[0], make([]byte, 4096)) {
			n += written
		}
	}
	const mappings = 6000
	b, err := unix.Mmap(-1, 0, mappings*4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	fail(err)
	for i := 0; i < mappings; i += 2 {
		fail(unix.Mprotect(b[i*4096:(i+1)*4096], unix.PROT_READ))
	}
	const idle = 5 // SCHED_IDLE
	priority := int32(0)
	_, _, _ = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, idle, uintptr(unsafe.Pointer(&priority)))
	os.Exit(0)
}

// keepFolios keeps large folios of the page cache in pipes, by a byte of each, after their file has lost them.
func keepFolios(count int, fail func(error)) {
	f, err := os.OpenFile("folio", os.O_RDWR|os.O_CREATE, 0o600)
	fail(err)
	text := bytes.Repeat([]byte{1}, 2<<20)
	var pipe [2]int
	for i := range count {
		if i%16 == 0 { // of a page each
			fail(unix.Pipe2(pipe[:], 0))
		}
		_, err := f.WriteAt(text, 0)
		fail(err)
		offset := int64(1 << 20)
		_, err = unix.Splice(int(f.Fd()), &offset, pipe[1], nil, 1, 0)
		fail(err)
		fail(f.Truncate(0))
	}
}
