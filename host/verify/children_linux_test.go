package verify_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/verify"
)

// A check starts three processes that do not end: a child, a child of that, and a process
// that has left the process group. It writes their ids to the file pids of the checkout.
const startsOthers = `sleep MARK & echo $! > list
sh -c 'sleep MARK & echo $! >> list; wait' &
echo $! >> list
setsid sh -c 'echo $$ >> list; exec sleep MARK' &
until test $(wc -l < list) = 4; do sleep 0.01; done
mv list pids
wait`

// V9: "commands have CI=true, a timeout and a process group": what a check has started is
// dead when the verification returns, after its timeout and after a cancel.
func TestV9NoProcessIsLeft(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not on this machine")
	}
	// The processes may be in a PID namespace, so they are found by their arguments.
	mark := "600." + strconv.Itoa(os.Getpid())
	dir := repo(t, map[string]string{"check.sh": strings.ReplaceAll(startsOthers, "MARK", mark)})
	for _, c := range []struct{ name, check string }{
		{"timeout", `{"type":"test_pass","verify":{"command":"sh check.sh","timeoutMs":5000}}`},
		{"cancel", `{"type":"test_pass","verify":{"command":"sh check.sh","timeoutMs":600000}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := ""
			v := verifier(t, func(o *verify.Options) { folder = o.Dir })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			started := make(chan int, 1)
			go func() {
				started <- await(ctx, filepath.Join(folder, "checkouts", "*", "tree", "pids"), mark)
				if c.name == "cancel" {
					cancel()
				}
			}()
			r, err := v.Run(ctx, verify.Job{Criteria: criteria(t, `[`+c.check+`]`), RepoURL: dir, Branch: "work", Approved: true})
			if c.name == "cancel" && !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %+v, %v", r, err)
			}
			if c.name == "timeout" && (err != nil || len(r.Checks) != 1 || !strings.Contains(r.Checks[0].Message, "no end after")) {
				t.Errorf("timed out: %+v, %v", r, err)
			}
			cancel() // ends the goroutine if the check has not begun
			if n := <-started; n < 3 {
				t.Fatalf("the check has started %d processes with %s", n, mark)
			}
		})
	}
	t.Cleanup(func() { // behind the parallel parts
		for _, pid := range processes(mark) {
			t.Errorf("process %d is alive", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// await returns how many processes have the mark in their arguments once a file matches a
// pattern, 0 if ctx ends before.
func await(ctx context.Context, pattern, mark string) int {
	for ctx.Err() == nil {
		if found, _ := filepath.Glob(pattern); len(found) == 1 {
			return len(processes(mark))
		}
		time.Sleep(time.Millisecond)
	}
	return 0
}

// processes returns those that have a text in their arguments and are no zombies.
func processes(mark string) (pids []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range list {
		text, err := os.ReadFile(path) // empty for a zombie
		pid, numberErr := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && numberErr == nil && pid != os.Getpid() && strings.Contains(string(text), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A repository with a pipe in the place of a file of git is refused before git waits for it.
func TestRepositoryWithAPipe(t *testing.T) {
	dir := repo(t, map[string]string{"a": "1"})
	path := filepath.Join(dir, ".git", "packed-refs")
	_ = os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, verifier(t), verify.Job{Criteria: criteria(t, `[{"type":"file","verify":{"path":"a"}}]`), RepoURL: dir, Branch: "work"})
	if r.Status != "blocked" || !strings.Contains(r.Blocked.Message, "packed-refs is not a regular file") {
		t.Errorf("%+v %+v", r, r.Blocked)
	}
}
