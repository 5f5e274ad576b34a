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
const startsOthers = `sleep 600 & echo $! > list
sh -c 'sleep 600 & echo $! >> list; wait' &
echo $! >> list
setsid sh -c 'echo $$ >> list; exec sleep 600' &
until test $(wc -l < list) = 4; do sleep 0.01; done
mv list pids
wait`

// V9: "commands have CI=true, a timeout and a process group": what a check has started is
// dead when the verification returns, after its timeout and after a cancel.
func TestV9NoProcessIsLeft(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not on this machine")
	}
	dir := repo(t, map[string]string{"check.sh": startsOthers})
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
			started := make(chan []int, 1)
			go func() {
				pids := await(ctx, filepath.Join(folder, "checkouts", "*", "tree", "pids"))
				started <- pids
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
			pids := <-started
			if len(pids) != 4 {
				t.Fatalf("the check has started %v", pids)
			}
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %d of %v is alive", pid, pids)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	}
}

// await returns the numbers in the file that matches a pattern, once it is there; nil if ctx
// ends before.
func await(ctx context.Context, pattern string) (pids []int) {
	for ctx.Err() == nil {
		if found, _ := filepath.Glob(pattern); len(found) == 1 {
			text, _ := os.ReadFile(found[0])
			for _, field := range strings.Fields(string(text)) {
				pid, _ := strconv.Atoi(field)
				pids = append(pids, pid)
			}
			return pids
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
