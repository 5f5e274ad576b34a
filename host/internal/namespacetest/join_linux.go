// Package namespacetest has the kernel take long to end a PID namespace, in tests of what waits for that.
package namespacetest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Join starts a child of this process in the PID namespace of another one, which the kernel does not end before this
// process has reaped the child. It skips the test where a namespace cannot be joined; end is called before.
func Join(t testing.TB, pid int, end func()) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with this goroutine
		fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(fd)
			err = unix.Setns(fd, unix.CLONE_NEWPID)
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	err := <-started
	if err == nil {
		return cmd
	}
	end()
	if !errors.Is(err, os.ErrPermission) {
		t.Fatal(err)
	}
	t.Skip("only the superuser joins a namespace: ", err)
	return nil
}
