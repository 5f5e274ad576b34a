//go:build unix

package gitexec_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
)

// hostOf is the variable with the repository in which this test program is the host of a
// git that waits for input.
const hostOf = "GITEXEC_TEST_HOST_OF"

// settled is how long git has after it has made a lock: it prepares to remove the lock at a
// signal just after that.
const settled = 300 * time.Millisecond

func TestMain(m *testing.M) {
	if dir := os.Getenv(hostOf); dir != "" {
		fmt.Println(waits(context.Background(), dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// waits starts a git that has locked the index and waits for input, which does not
// end, because git itself can write to it.
func waits(ctx context.Context, dir string) error {
	fifo := dir + ".fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return err
	}
	in, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	git := gitexec.Runner{Program: gitexec.LookPath()}
	_, err = git.ExecFrom(ctx, dir, "", in, "update-index", "--add", "--stdin")
	return err
}

func repository(t *testing.T) (dir, lock string) {
	t.Helper()
	git := gitexec.Runner{Program: gitexec.LookPath()}
	if git.Program == "" {
		t.Skip("git is not on this machine")
	}
	dir = t.TempDir()
	if a, err := git.Exec(t.Context(), dir, "", "", "init", "--quiet"); err != nil || a.Code != 0 {
		t.Fatalf("git init: %v, %+v", err, a)
	}
	return dir, filepath.Join(dir, ".git", "index.lock")
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after 30 s: %s", what)
		}
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// TestCancelledGitLeavesNoLock: a step that is cancelled must not stop every later git of
// the user.
func TestCancelledGitLeavesNoLock(t *testing.T) {
	dir, lock := repository(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- waits(ctx, dir) }()
	until(t, "git has the lock", func() bool { return exists(lock) })
	time.Sleep(settled)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled git: %v", err)
	}
	if exists(lock) {
		t.Error("a cancelled git left the lock of the index")
	}
}

// TestGitEndsWithItsHost: a host that is killed leaves neither a git that still works in the
// repository nor its lock.
func TestGitEndsWithItsHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with the one that started it")
	}
	dir, lock := repository(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self)
	host.Env = append(os.Environ(), hostOf+"="+dir)
	printed, err := host.StdoutPipe()
	if err == nil {
		err = host.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Process.Kill() }() // if the test fails before it does
	until(t, "git has the lock", func() bool { return exists(lock) })
	time.Sleep(settled) // threads of the host may end meanwhile; git must not end with one
	if !exists(lock) {
		t.Error("git ended before its host")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(printed).ReadString('\n'); line != "" {
		t.Errorf("the git of the host ended by itself: %s", line)
	}
	_ = host.Wait()
	until(t, "the lock is gone", func() bool { return !exists(lock) })
}
