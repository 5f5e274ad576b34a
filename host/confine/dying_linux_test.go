package confine_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A command whose processes the kernel takes long to end has its result before, and the next one begins behind their end. The
// kernel waits here for a process in the namespace of the command that its parent, this test, has not reaped.
func TestResultBeforeTheKernelIsDone(t *testing.T) {
	needNamespaces(t)
	c := command(t, "")
	c.Shell = "echo out; touch " + c.Root + "/begun; sleep 600" // no other has this line
	r := runner(t)
	p, err := r.Begin(t.Context(), c)
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
	held := join(t, launcherOf(t, c))
	p.Stop()
	if result, err := p.Wait(); err != nil || result.Limit != "" || string(result.Output) != "out\n" || result.ExitCode == 0 {
		t.Errorf("%v %s", err, describe(result))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Begin(ctx, command(t, "true")); !errors.Is(err, context.Canceled) {
		t.Errorf("the next command began beside it: %v", err)
	}
	_ = held.Wait() // it was killed
	if result, err := r.Run(t.Context(), command(t, "true")); err != nil || result.ExitCode != 0 {
		t.Errorf("%v %s", err, describe(result))
	}
}

// join starts a child of this process in the PID namespace of another.
func join(t *testing.T, pid int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with this goroutine
		failed <- func() error {
			fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.Setns(fd, unix.CLONE_NEWPID); err != nil {
				return err
			}
			return cmd.Start()
		}()
	}()
	if err := <-failed; err != nil {
		if errors.Is(err, os.ErrPermission) {
			t.Skip("only the superuser joins a namespace: ", err)
		}
		t.Fatal(err)
	}
	return cmd
}
