package confine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

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

// What others have and write is not counted as the command's, also while a process of it has ended and its
// parent does not ask how: the kernel lets an ordinary user read nothing of such a process. So it is while threads of it compute.
func TestLimitsAreItsOwn(t *testing.T) {
	needNamespaces(t)
	t.Run("ended", func(t *testing.T) {
		takeBeside(t, command(t, "(true & exec sleep 60) & touch begun; while ! [ -e taken ]; do sleep 0.02; done; sleep 1; echo fine"))
	})
	t.Run("busy", func(t *testing.T) {
		takeBeside(t, helper(t, "busy", "& touch begun; while ! [ -e taken ]; do sleep 0.02; done; sleep 4; echo fine"))
	})
}

// TestOneMemoryCountsOnce: a process and one that it begins have one memory until that executes its own program, here for as
// long as it waits for the writer of a pipe.
func TestOneMemoryCountsOnce(t *testing.T) {
	needNamespaces(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("python3 is not on this machine") // its child shares its memory, as that of glibc does
	}
	c := command(t, `mkfifo pipe; /usr/bin/python3 -c "$BEGIN" & while ! [ -e has ]; do sleep 0.02; done; sleep 1; echo > pipe; wait; echo fine`)
	c.Limits.Memory = 300 << 20
	if raceEnabled {
		c.Limits.Memory = 900 << 20 // the launcher has much of it
	}
	c.Env = map[string]string{"SIZE": strconv.FormatUint(c.Limits.Memory/10*6, 10), "BEGIN": `
import os
memory = bytearray(int(os.environ["SIZE"]))
for i in range(0, len(memory), 4096): memory[i] = 1
open("has", "w").close()
os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "pipe", os.O_RDONLY, 0)]), 0)`}
	if r := execute(t, c); string(r.Output) != "fine\n" {
		t.Errorf("%s", describe(r))
	}
}

// compute is busy with four threads.
func compute() {
	for range 4 {
		go func() {
			for { //nolint:staticcheck // it is to be busy
			}
		}()
	}
	time.Sleep(time.Minute)
}

// takeBeside takes memory and disk while a command is executed, which has begun with the file begun, and waits for the file taken.
func takeBeside(t *testing.T, c confine.Command) {
	t.Helper()
	t.Setenv("GOCACHE", t.TempDir())
	c.Limits.Memory, c.Limits.Disk = 200<<20, 200<<20
	if raceEnabled {
		c.Limits.Memory = 600 << 20 // the launcher has much of it
	}
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
		for range c.Limits.Memory / (200 << 20) {
			if _, err := unix.Write(memory, b); err != nil {
				t.Fatal(err)
			}
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

// What the kernel counts by user is left to the user's other programs.
func TestSignalsAreLeft(t *testing.T) {
	needNamespaces(t)
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &most); err != nil || most.Max == unix.RLIM_INFINITY {
		t.Skip("this user may have any number of waiting signals")
	}
	c := helper(t, "waiting signals", "")
	c.Shell = fmt.Sprintf("%s='waiting signals' ./helper", helperVariable)
	r := execute(t, c)
	if n, err := strconv.ParseUint(strings.TrimSpace(string(r.Output)), 10, 64); err != nil || n == 0 || n > most.Max/8 {
		t.Errorf("%d signals wait of %d: %s", n, most.Max, describe(r))
	}
}

// needFiles skips a test where a process may not have as many open files.
func needFiles(t *testing.T, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max < n {
		t.Skipf("a process may have %d open files here, and the test needs %d (%v)", limit.Max, n, err)
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
	for _, what := range []string{"private", "shared", "memfd on its way", "memfd in a call", "memfd in a message that waits", "memfd in a call that is not executed", "memfd with one page mapped", "shared with one page mapped", "sockets in poll", "page tables", "sockets", "sockets of a process that others may not look into", "semaphores"} {
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
	t.Run("pipes", func(t *testing.T) {
		if raceEnabled {
			t.Skip("a process of the race detector has more memory than its pipes")
		}
		needFiles(t, 4096)
		c := taking(t, "take", "pipes")
		c.Limits.Memory = 160 << 20
		if r := execute(t, c); !strings.Contains(r.Limit, "the kernel has more") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("connections", func(t *testing.T) {
		if r := execute(t, taking(t, "take", "connections")); !strings.Contains(r.Limit, "connections") {
			t.Errorf("%s", describe(r))
		}
	})
	for _, address := range []string{"127.0.0.1:0", ":0"} {
		t.Run("connections that are not accepted at "+address, func(t *testing.T) {
			if r := execute(t, taking(t, "take", "unaccepted "+address)); !strings.Contains(r.Limit, "connections") {
				t.Errorf("%s", describe(r))
			}
		})
	}
	t.Run("connections that are closed with data to send", func(t *testing.T) {
		if r := execute(t, taking(t, "take", "orphans")); !strings.Contains(r.Limit, "connections") {
			t.Errorf("%s", describe(r))
		}
	})
	t.Run("many sockets", func(t *testing.T) {
		c := taking(t, "take", "many sockets")
		if raceEnabled {
			c.Limits.Memory = 600 << 20 // the program has much of it
		}
		if r := execute(t, c); !strings.Contains(r.Limit, "sockets") {
			t.Errorf("%s", describe(r))
		}
	})
	for _, what := range []string{"deep", "deleted on its way", "deleted and mapped", "deleted in a call", "deleted in a message that waits"} {
		t.Run(what, func(t *testing.T) {
			if r := execute(t, taking(t, "take", what)); !strings.Contains(r.Limit, "files") {
				t.Errorf("%s", describe(r))
			}
		})
	}
	for _, what := range []string{"mappings", "messages", "semaphores to undo", "connections of Unix sockets"} {
		t.Run(what, func(t *testing.T) {
			c := taking(t, "take", what)
			if raceEnabled {
				c.Limits.Memory = 600 << 20 // the programs have much of it
			}
			if r := execute(t, c); r.Limit == "" { // threads that are long in a call may have watches of epoll as well
				t.Errorf("%s", describe(r))
			}
		})
	}
	for what, limit := range map[string]string{"private": "memory", "memfd in a call": "memory", "deleted": "files", "deleted in a call": "files"} {
		t.Run(what+" without a first thread", func(t *testing.T) {
			if r := execute(t, taking(t, "take without leader", what)); !strings.Contains(r.Limit, limit) {
				t.Errorf("%s", describe(r))
			}
		})
	}
	t.Run("memfd in a message that waits of the last thread", func(t *testing.T) {
		if _, err := os.Stat("/usr/bin/python3"); err != nil {
			t.Skip("python3 is not on this machine") // a program of Go always has several threads
		}
		c := taking(t, "", "")
		c.Shell = `for i in 1 2 3 4 5; do /usr/bin/python3 -c "$HIDE" & while ! [ -e closed ]; do sleep 0.02; done; rm closed; done; wait`
		c.Env = map[string]string{"HIDE": hideInMessage}
		if r := execute(t, c); !strings.Contains(r.Limit, "memory") {
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
	t.Run("deleted files in caches", func(t *testing.T) {
		t.Setenv("GOCACHE", t.TempDir())
		c := command(t, `cd ~/.cache/go-build; exec 5>f; rm f; i=0; while :; do head -c 1000000 /dev/zero >&5; sleep 0.01; done`)
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

// hideInMessage has 100 MB in a message that waits to be sent. The thread that has closed the file, when the other one is in
// a call with the socket as its first argument, ends.
const hideInMessage = `
import array, os, socket, threading
def close():
    while True:
        with open("/proc/self/task/%d/syscall" % os.getpid()) as f:
            call = f.read().split()
        if len(call) > 3 and call[1] == hex(pair[0].fileno()):
            os.close(fd)
            open("closed", "w").close()
            return
fd = os.memfd_create("taken")
for _ in range(100):
    os.write(fd, bytes(1 << 20))
pair = socket.socketpair()
pair[0].setblocking(False)
try:
    while True:
        pair[0].send(bytes(4096))
except BlockingIOError:
    pair[0].setblocking(True)
threading.Thread(target=close).start()
pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
`

// A command that makes the exact look at its memory last is ended by what a look beside it sees.
func TestLimitsDuringALook(t *testing.T) {
	memory, err := unix.MemfdCreate("of a command", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(memory)
	if _, err := unix.Write(memory, make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	for what, waits := range map[string]bool{"memory of processes": false, "shared memory, of processes that keep a look waiting": true} {
		t.Run(what, func(t *testing.T) {
			if waits {
				if _, err := os.Stat("/proc/1/schedstat"); err != nil {
					t.Skip("the kernel does not say how long a thread waits: ", err)
				}
			}
			if limit := confine.LimitDuringALook(2<<20, waits); limit == "" {
				t.Error("no limit was exceeded")
			}
		})
	}
}

// What the kernel has for no command that is counted is that of each, once it has lasted or memory is short.
func TestObjectsOfTheKernel(t *testing.T) {
	for _, one := range []struct {
		name                      string
		total, available, objects uint64
		lasts                     time.Duration
		exceeds                   bool
	}{
		{"what one command may have", 32, 20, 8, time.Hour, false},
		{"more, as after a command that was ended", 32, 20, 9, time.Second, false},
		{"more for long", 32, 20, 9, time.Minute, true},
		{"more where memory is short", 32, 3, 9, 0, true},
		{"what other programs of a large machine have", 256, 100, 31, time.Hour, false},
		{"more than those of a large machine", 256, 100, 33, time.Hour, true},
		{"a quarter of a small machine", 4, 2, 1, time.Hour, false},
		{"more than that", 4, 2, 2, time.Hour, true},
	} {
		if limit := confine.LimitOfObjects(one.total, one.available, one.objects, one.lasts); (limit != "") != one.exceeds {
			t.Errorf("%s: %q", one.name, limit)
		}
	}
	if limit := confine.LimitOfAllObjects(time.Hour); !strings.Contains(limit, "the kernel") {
		t.Errorf("a look finds %q", limit)
	}
}

// A walk of the folders of a command that the command makes last does not keep the launcher from what the disk has lost.
func TestDiskDuringAWalk(t *testing.T) {
	dir := t.TempDir()
	if limit := confine.DiskDuringAWalk(dir, time.Second, 1<<40, 2<<40); limit != "" {
		t.Errorf("a walk of a second: %s", limit)
	}
	if limit := confine.DiskDuringAWalk(dir, time.Hour, 1<<40, 2<<40); !strings.Contains(limit, "its files") {
		t.Errorf("a walk of an hour: %q", limit)
	}
	if limit := confine.DiskDuringAWalk(dir, time.Hour, 3<<40, 2<<40); limit != "" {
		t.Errorf("a disk that has lost less than the limit: %s", limit)
	}
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=100m"); err != nil {
		t.Skip("the test cannot mount a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if limit := confine.DiskDuringAWalk(dir, 0, 1<<40, 1<<20); !strings.Contains(limit, "are free") {
		t.Errorf("a disk with little free space: %q", limit)
	}
}

// A command that moves folders to where a walk has not been cannot keep it from its end.
func TestMovedFoldersAreWalkedOnce(t *testing.T) {
	dir := t.TempDir()
	for i := range 60 {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	slots, err := opened.Readdirnames(-1) // in the order of a walk
	opened.Close()
	if err != nil {
		t.Fatal(err)
	}
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	reader := os.NewFile(uintptr(events), "inotify")
	const trees = 6
	at := map[int32]int{} // the slot of each watch
	for i := range trees {
		tree := filepath.Join(dir, slots[i], strconv.Itoa(i))
		if err := os.Mkdir(tree, 0o700); err != nil {
			t.Fatal(err)
		}
		for k := range 1000 {
			if err := os.WriteFile(filepath.Join(tree, strconv.Itoa(k)), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		watch, err := unix.InotifyAddWatch(events, tree, unix.IN_CLOSE_NOWRITE|unix.IN_ONLYDIR)
		if err != nil {
			t.Fatal(err)
		}
		at[int32(watch)] = i
	}
	ended := make(chan struct{})
	go func() { // each tree that was walked is moved before the walk again
		defer close(ended)
		for b := make([]byte, unix.SizeofInotifyEvent); ; {
			if _, err := reader.Read(b); err != nil {
				return
			}
			watch := int32(binary.NativeEndian.Uint32(b))
			from := at[watch]
			if to := from + trees; to < len(slots) {
				tree := strconv.Itoa(from % trees)
				_ = os.Rename(filepath.Join(dir, slots[from], tree), filepath.Join(dir, slots[to], tree)) // else it is walked once
				at[watch] = to
			}
		}
	}()
	const most = 60 + 60 + trees*1000 // with the top of a tree in each slot
	if n := confine.FilesOf(dir, math.MaxUint64); n > most {
		t.Errorf("the walk found %d files, of %d", n, most)
	}
	reader.Close()
	<-ended
	if n := confine.FilesOf(dir, 1<<10); n > 60+trees {
		t.Errorf("the walk went on to %d files after it had found enough", n)
	}
}

// A look does not read page tables for seconds: a process that has many has what it says, but no more than the machine.
func TestLargePageTables(t *testing.T) {
	for _, c := range []struct {
		tables uint64 // KiB
		whole  bool   // what it says counts, and not its part of it
	}{{100, false}, {100 << 10, true}} {
		dir := t.TempDir()
		for name, text := range map[string]string{"status": fmt.Sprintf("RssAnon:\t%d kB\nVmPTE:\t%d kB\n", 1<<40, c.tables), "smaps_rollup": "Pss_Anon: 1 kB\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		const machine = 1 << 45
		if n := confine.ExactMemory(dir, 1<<50, machine); n >= machine != c.whole || n >= 2*machine {
			t.Errorf("%d KiB of page tables: %d bytes", c.tables, n)
		}
	}
}

// A process has ended, or ends, by what the kernel says of its threads. One without memory may keep its files.
func TestProcessEnds(t *testing.T) {
	const first, exiting, second = "7 (a) b) Z 1 7 7 0 -1 4228108 0 0", "8 (a b) D 1 7 7 0 -1 4194308 0 0", "8 (a b) S 1 7 7 0 -1 4194560 0 0"
	for _, c := range []struct {
		threads []string
		ends    bool
	}{{nil, true}, {[]string{first}, true}, {[]string{first, exiting}, true}, {[]string{first, ""}, true}, {[]string{first, second}, false}} {
		dir := t.TempDir()
		for i, stat := range c.threads {
			thread := filepath.Join(dir, "task", fmt.Sprint(7+i))
			if err := os.MkdirAll(thread, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"stat": stat, "statm": "0 0 0 0 0 0 0\n"} {
				if err := os.WriteFile(filepath.Join(thread, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ends := confine.Ends(dir); ends != c.ends {
			t.Errorf("%q: ends: %t", c.threads, ends)
		}
	}
}

// The first thread ends where only another one shall be left. Go keeps the main goroutine on it
// while packages are initialised.
func init() {
	if os.Getenv(helperVariable) == "take without leader" {
		go take(os.Args[1])
		_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
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
	const parts = 5 // each is less than a limit
	writePart := func(fd int) {
		for b, i := make([]byte, 1<<20), 0; i < length/parts>>20; i++ {
			_, err := unix.Write(fd, b)
			fail(err)
		}
	}
	write := func(fd int) {
		for range parts {
			writePart(fd)
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
	wait := func(call func() error, files ...int) { // in a call, without the files being in the table
		begins := make(chan struct{})
		go func() {
			close(begins)
			fail(call())
		}()
		<-begins
		time.Sleep(50 * time.Millisecond) // until it waits
		for _, fd := range files {
			fail(unix.Close(fd))
		}
	}
	hold := func(fd int) { // in a call that waits, without an entry in the table of files
		var pipe [2]int
		fail(unix.Pipe2(pipe[:], unix.O_NONBLOCK))
		for err := error(nil); err == nil; _, err = unix.Write(pipe[1], make([]byte, 4096)) {
		}
		fail(unix.SetNonblock(pipe[1], false))
		offset := int64(0)
		wait(func() error { _, err := unix.Splice(fd, &offset, pipe[1], nil, 1<<20, 0); return err }, fd)
	}
	full := func() int { // a socket that takes nothing more
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		fail(err)
		fail(unix.SetNonblock(pair[0], true))
		for err := error(nil); err == nil; _, err = unix.Write(pair[0], make([]byte, 4096)) {
		}
		fail(unix.SetNonblock(pair[0], false))
		return pair[0]
	}
	children := func(n int, what string) {
		for range n {
			cmd := exec.Command("/proc/self/exe", what)
			cmd.Env = []string{helperVariable + "=take"}
			fail(cmd.Start())
		}
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
	forks := func(n int, do func()) { // without the runtime of Go: do makes system calls only
		for range n {
			pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno != 0 {
				fail(errno)
			}
			if pid == 0 {
				for do(); ; {
					syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
				}
			}
		}
	}
	switch what {
	case "private":
		touch(mapped(-1, unix.MAP_PRIVATE|unix.MAP_ANON))
	case "fork":
		b := make([]byte, length/2)
		touch(b)
		forks(5, func() {})
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
		if what == "memfd on its way" {
			send(fd)
		}
	case "memfd with one page mapped":
		for range parts {
			fd, err := unix.MemfdCreate("taken", 0)
			fail(err)
			writePart(fd)
			_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
			fail(err)
			fail(unix.Close(fd))
		}
	case "shared with one page mapped":
		b := mapped(-1, unix.MAP_SHARED|unix.MAP_ANON)
		for first := 0; first < length; first += length / parts { // never as much at once as the limit
			touch(b[first : first+length/parts])
			_, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(unsafe.Pointer(&b[first])), length/parts, unix.MADV_DONTNEED)
			if errno != 0 {
				fail(errno)
			}
		}
		b[0] = 1
	case "memfd in a call":
		for range parts {
			fd, err := unix.MemfdCreate("taken", 0)
			fail(err)
			writePart(fd)
			hold(fd)
		}
	case "memfd in a call that is not executed": // of threads that get next to nothing of a processor beside others
		var all, first unix.CPUSet
		fail(unix.SchedGetaffinity(0, &all))
		for cpu := 0; first.Count() == 0; cpu++ {
			if all.IsSet(cpu) {
				first.Set(cpu)
			}
		}
		onFirst := func(do func()) {
			ready := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				fail(unix.SchedSetaffinity(0, &first))
				close(ready)
				do()
			}()
			<-ready
		}
		onFirst(func() {
			for { //nolint:staticcheck // it is to be busy
			}
		})
		for range parts {
			fd, err := unix.MemfdCreate("taken", 0)
			fail(err)
			for b, i := bytes.Repeat([]byte{1}, 1<<20), 0; i < length/parts>>20; i++ {
				_, err := unix.Write(fd, b)
				fail(err)
			}
			fail(unix.Ftruncate(fd, 2<<30)) // what is not written takes no memory, and long to read
			to, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			fail(err)
			onFirst(func() {
				fail(unix.Setpriority(unix.PRIO_PROCESS, 0, 19))
				_, err := unix.Preadv(fd, slices.Repeat([][]byte{to}, 1024), 0)
				fail(err)
			})
			for atomic.LoadUint32((*uint32)(unsafe.Pointer(&to[0]))) == 0 { // until it is in the call
				time.Sleep(time.Millisecond)
			}
			fail(unix.Close(fd))
		}
		fmt.Println("hidden")
	case "memfd in a message that waits", "deleted in a message that waits":
		to := full()
		for range parts {
			var fd int
			if strings.HasPrefix(what, "memfd") {
				var err error
				fd, err = unix.MemfdCreate("taken", 0)
				fail(err)
				writePart(fd)
			} else {
				fd = deleted()
				writePart(fd)
				fail(unix.Fsync(fd))
			}
			wait(func() error { return unix.Sendmsg(to, []byte{1}, unix.UnixRights(fd), nil, 0) }, fd)
		}
	case "sockets in poll":
		for n := 0; n < length; {
			var files []int
			var polled []unix.PollFd
			for range 60 {
				pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
				fail(err)
				files = append(files, pair[:]...)
				polled = append(polled, unix.PollFd{Fd: int32(pair[0])}, unix.PollFd{Fd: int32(pair[1])})
				for b := make([]byte, 4096); ; {
					written, err := unix.Write(pair[0], b)
					if err != nil {
						break
					}
					n += written
				}
			}
			wait(func() error { _, err := unix.Poll(polled, -1); return err }, files...)
		}
	case "semaphores":
		const ofSet = 32_000 // 2 MB
		for range length / (ofSet * 64) {
			if _, _, errno := unix.Syscall(unix.SYS_SEMGET, 0, ofSet, 0o600); errno != 0 {
				fail(errno)
			}
		}
	case "semaphores to undo": // the sets take little, and each process has as many numbers as they have semaphores
		const ofSet = 32_000
		var sets []uintptr
		for range 40 {
			set, _, errno := unix.Syscall(unix.SYS_SEMGET, 0, ofSet, 0o600)
			if errno != 0 {
				fail(errno)
			}
			sets = append(sets, set)
		}
		forks(800, func() {
			operation := [3]int16{0, 1, 0x1000} // adds 1 to the first, with SEM_UNDO
			for _, set := range sets {
				_, _, _ = syscall.RawSyscall(unix.SYS_SEMOP, set, uintptr(unsafe.Pointer(&operation)), 1)
			}
		})
	case "mappings": // without a page
		const most = 60_000
		b, err := unix.Mmap(-1, 0, most*4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		fail(err)
		for i := 0; i < most; i += 2 {
			fail(unix.Mprotect(b[i*4096:(i+1)*4096], unix.PROT_READ))
		}
		forks(100, func() {})
	case "messages": // without a text
		var message [2]int64 // type and text
		message[0] = 1
		const noWait = 0o4000
		for range 2000 {
			queue, _, errno := unix.Syscall(unix.SYS_MSGGET, 0, 0o600, 0)
			for errno == 0 {
				_, _, errno = unix.Syscall6(unix.SYS_MSGSND, queue, uintptr(unsafe.Pointer(&message)), 0, noWait, 0, 0)
			}
			if errno != unix.EAGAIN { // it is full
				fail(errno)
			}
		}
	case "connections of Unix sockets": // that are not accepted, and closed at the other end
		n := 0
		for i := 0; n < 2*length; i++ {
			l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			fail(err)
			address := &unix.SockaddrUnix{Name: fmt.Sprintf("/tmp/listener%d", i)}
			fail(unix.Bind(l, address))
			fail(unix.Listen(l, 4096)) // the kernel bounds it
			for n < 2*length {
				c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
				fail(err)
				_ = unix.SetsockoptInt(c, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<30) // the kernel bounds it
				connectErr := unix.Connect(c, address)
				for b := make([]byte, 64<<10); connectErr == nil; {
					written, err := unix.Write(c, b)
					if err != nil {
						break
					}
					n += written
				}
				fail(unix.Close(c))
				if connectErr != nil {
					break // as many wait as may
				}
			}
		}
	case "pipes":
		children(30, "pipes of one")
	case "pipes of one":
		var files unix.Rlimit
		fail(unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
		for range min(1900, files.Cur/2-20) { // the runtime needs some
			var pipe [2]int
			fail(unix.Pipe2(pipe[:], unix.O_NONBLOCK))
			for err := error(nil); err == nil; _, err = unix.Write(pipe[1], make([]byte, 4096)) {
			}
		}
	case "connections": // each is filled and never read
		l, err := net.Listen("tcp", "127.0.0.1:0")
		fail(err)
		var kept []net.Conn
		for i := range 200 {
			c, err := net.Dial("tcp", l.Addr().String())
			fail(err)
			accepted, err := l.Accept()
			fail(err)
			kept = append(kept, c, accepted)
			fail(c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)))
			n, _ := c.Write(make([]byte, 32<<20)) // the deadline ends it
			fmt.Println(i, n)
		}
		time.Sleep(time.Minute)
		runtime.KeepAlive(kept)
	case "orphans": // each is filled and closed, and the other end never reads
		buffer := func(option, size int) func(_, _ string, c syscall.RawConn) error {
			return func(_, _ string, c syscall.RawConn) (err error) {
				controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, size) })
				return errors.Join(controlErr, err)
			}
		}
		listening := net.ListenConfig{Control: buffer(unix.SO_RCVBUF, 1)}
		l, err := listening.Listen(context.Background(), "tcp", "127.0.0.1:0")
		fail(err)
		dialer := net.Dialer{Control: buffer(unix.SO_SNDBUF, 8<<20)} // the kernel bounds it
		var kept []net.Conn
		n := 0
		for range 3000 {
			c, err := dialer.Dial("tcp", l.Addr().String())
			fail(err)
			accepted, err := l.Accept()
			fail(err)
			kept = append(kept, accepted)
			fail(c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)))
			written, _ := c.Write(make([]byte, 16<<20)) // the deadline ends it
			fail(c.Close())
			n += written
		}
		fmt.Println("written", n)
		time.Sleep(time.Minute)
		runtime.KeepAlive(kept)
	case "unaccepted 127.0.0.1:0", "unaccepted :0": // the other end is closed
		large := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
			controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<30) }) // the kernel bounds it
			return errors.Join(controlErr, err)
		}}
		l, err := large.Listen(context.Background(), "tcp", strings.TrimPrefix(what, "unaccepted "))
		fail(err)
		n := 0
		for range 3000 {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port))
			fail(err)
			fail(c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)))
			written, _ := c.Write(make([]byte, 1<<20)) // the deadline ends it
			fail(c.Close())
			n += written
		}
		fmt.Println("written", n)
		time.Sleep(time.Minute)
		runtime.KeepAlive(l)
	case "many sockets":
		children(20, "sockets of one")
	case "sockets of one":
		for range 500 {
			_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			fail(err)
		}
	case "page tables": // one page of each, of a mapping without data
		const large = 1 << 40
		b, err := unix.Mmap(-1, 0, large, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		fail(err)
		fail(unix.Madvise(b, unix.MADV_NOHUGEPAGE))
		sum := byte(0)
		for i := 0; i < length/4096*(2<<20); i += 2 << 20 {
			sum += b[i]
		}
		runtime.KeepAlive(sum)
	case "sockets", "sockets of a process that others may not look into":
		if what != "sockets" {
			fail(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
		}
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
	case "deleted in a call":
		for range parts {
			fd := deleted()
			writePart(fd)
			fail(unix.Fsync(fd))
			hold(fd)
		}
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

// A command does not use up the inodes of a disk, of which the host needs some for all that it writes.
func TestInodesAreLeft(t *testing.T) {
	needNamespaces(t)
	// The pauses let the watch look before all are used, on busy machines too.
	c := command(t, "i=0; while :; do i=$((i+1)); : >f$i; [ $((i % 1000)) -ne 0 ] || sleep 0.2; done")
	if err := unix.Mount("inodes", c.Root, "tmpfs", 0, "nr_inodes=40000"); err != nil {
		t.Skip("the test cannot mount a disk with few inodes: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(c.Root, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r := execute(t, c)
	if !strings.Contains(r.Limit, "more files fit on the disk") {
		t.Errorf("%s", describe(r))
	}
	var s unix.Statfs_t
	if err := unix.Statfs(c.Root, &s); err != nil || s.Ffree == 0 {
		t.Errorf("%d inodes are free, %v", s.Ffree, err)
	}
}
