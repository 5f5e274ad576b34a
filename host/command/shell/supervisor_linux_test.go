package shell

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/namespacetest"
)

// Supervisors that many executions at once needed serve the next ones, and end when none come.
func TestIdleSupervisors(t *testing.T) {
	var s supervisors
	var all []*supervisor
	for range maxIdle + 2 {
		one, err := s.take(steps)
		if err != nil {
			t.Fatal(err)
		}
		one.fresh = true
		all = append(all, one)
	}
	for _, one := range all {
		s.put(one, steps)
	}
	for i := range all {
		if again, err := s.take(steps); err != nil || again != all[len(all)-1-i] {
			t.Errorf("the next execution has another supervisor, %v", err)
		}
	}
	for _, one := range all {
		s.put(one, steps)
	}
	s.trim(steps)
	if n := len(s.idle[steps]); n != len(all) {
		t.Errorf("%d are idle of %d that were needed", n, len(all))
	}
	s.trim(steps)
	<-all[0].gone
	<-all[1].gone
	if n := len(s.idle[steps]); n != maxIdle {
		t.Errorf("%d are idle", n)
	}
	s.close()
}

// A namespace that the kernel takes long to end has its result before, and the end of the host does not wait for it. The kernel
// waits here for a process in the namespace that its parent, this test, has not reaped.
func TestNamespaceIsLeftToTheKernel(t *testing.T) {
	m := newManager(t, Options{})
	cmd := exec.Command("/bin/sleep", "600")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID}
	tree, err := m.StartTree(cmd)
	if err != nil {
		t.Skip("this machine has no namespaces: ", err)
	}
	held := namespacetest.Join(t, tree.p.pid, func() {
		if _, _, err := tree.End(); err != nil {
			t.Error(err)
		}
	})
	defer func() { _ = held.Wait() }() // it was killed
	if code, signal, err := tree.End(); code != 128+int(syscall.SIGKILL) || signal != "killed" || err != nil {
		t.Errorf("%d %q %v", code, signal, err)
	}
	select {
	case <-tree.Ended():
		t.Error("all have ended")
	default:
	}
	m.hurry(errClosing())
	<-tree.Ended()
	if _, err := os.Stat(tree.file); err == nil {
		t.Error("the file of the tree is left")
	}
}

// The caller of a confined program that is stopped has its answer before what is done behind the program has ended, and the
// execution is live until then. The end of the host ends it.
func TestAnswerBeforeAConfinedProgramIsLookedAfter(t *testing.T) {
	looking := make(chan context.Context, 1)
	ended := make(chan error, 1)
	m := newManager(t, Options{Confine: func(_ context.Context, _ *command.Call, cmd *exec.Cmd) (*exec.Cmd, func(context.Context) error, error) {
		return cmd, func(ctx context.Context) error {
			looking <- ctx
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		}, nil
	}})
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for !exists(filepath.Join(dir, "begun")) {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, _, err := m.Run(ctx, &command.Call{By: command.ByUser, Workspace: dir}, "", []string{"/bin/sh", "-c", "touch begun; sleep 600"}, ""); err == nil {
		t.Error("a program that was stopped has a result")
	}
	if (<-looking).Err() != nil {
		t.Error("the end of the caller ended it")
	}
	m.mu.Lock()
	live := m.snapshot((*execution).isLive)
	m.mu.Unlock()
	if len(live) != 1 {
		t.Errorf("%d executions are live", len(live))
	}
	m.hurry(errClosing())
	if err := <-ended; err == nil || err.Error() != errClosing().Error() {
		t.Errorf("ended by %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func newManager(t *testing.T, opt Options) *Manager {
	t.Helper()
	opt.Dir = t.TempDir()
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}
