package confine_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

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

// A launcher that ends while the command runs fails the command, not the machine.
func TestLauncherIsEnded(t *testing.T) {
	needNamespaces(t)
	c := command(t, "")
	c.Shell = "touch " + c.Root + "/begun; sleep 600" // no other has this line
	p, err := runner(t).Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	awaitBegun(c)
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
	t.Fatal("the launcher was not found")
	return 0
}

// signalLauncher sends every signal to the launcher in every way: by kill, with the code of a
// fault that did not happen, and as the owner of a socket that has data.
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
