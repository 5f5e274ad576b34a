package confine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

// TestOneMemoryCountsOnce: a process and one that it begins have one memory until that executes its own program, here for as
// long as it waits for the writer of a pipe.
func TestOneMemoryCountsOnce(t *testing.T) {
	needNamespaces(t)
	confine.WatchAlone(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("python3 is not on this machine") // its child shares its memory, as that of glibc does
	}
	c := command(t, `mkfifo pipe; /usr/bin/python3 -c "$BEGIN" & while ! [ -e has ]; do sleep 0.02; done; sleep 1; : > pipe; wait; echo fine`)
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

// TestExecutedMemory: a process may execute a file of memory that it has neither open nor mapped.
func TestExecutedMemory(t *testing.T) {
	const length = 64 << 20
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for part := make([]byte, 1<<20); err == nil; {
		var s unix.Stat_t
		if err = unix.Fstat(fd, &s); err == nil && s.Size >= length {
			break
		}
		_, err = unix.Write(fd, part)
	}
	dir := t.TempDir()
	if err := errors.Join(err, os.Mkdir(filepath.Join(dir, "fd"), 0o700)); err != nil {
		t.Fatal(err)
	}
	others := confine.ExactMemory(dir, 1<<50, 0) // temporary files of this machine
	if err := os.Symlink(fmt.Sprintf("/proc/self/fd/%d", fd), filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
	if n := confine.ExactMemory(dir, 1<<50, 0); n < others+length/2 {
		t.Errorf("%d bytes, and %d of others", n, others)
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
