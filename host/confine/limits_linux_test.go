package confine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

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
	confine.WatchAlone(t)
	t.Run("ended", func(t *testing.T) {
		takeBeside(t, command(t, "(true & exec sleep 60) & touch begun; while ! [ -e taken ]; do sleep 0.02; done; sleep 1; echo fine"))
	})
	t.Run("busy", func(t *testing.T) {
		takeBeside(t, helper(t, "busy", "& touch begun; while ! [ -e taken ]; do sleep 0.02; done; sleep 4; echo fine"))
	})
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
	awaitBegun(c)
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
	confine.WatchAlone(t)
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
