//go:build unix

package cond_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestNoChild(t *testing.T) {
	e := cond.New(cond.Options{})
	defer e.Close()
	for _, src := range []string{`[1].some(x => x)`, strings.Repeat(" ", 2000) + "1"} {
		_, err := eval(t, e, src, nil)
		got := abi.As(err)
		if got == nil || got.Code != abi.Unavailable || !strings.Contains(got.Hint, "ServeChild") {
			t.Errorf("%.20s: %v", src, err)
		}
		if err := check(e, src); abi.CodeOf(err) != abi.Unavailable {
			t.Errorf("check %.20s: %v", src, err)
		}
	}
	if v, err := eval(t, e, `1 === 1`, nil); err != nil || !v.Truthy {
		t.Errorf("the fast path needs no child: %v", err)
	}
}

func TestChildIsNotOurs(t *testing.T) {
	for _, child := range []subprocess.Command{
		{Path: "/nonexistent/program"},
		{Path: "/bin/true"},
		{Path: "/bin/echo", Args: []string{"hello there, this is not a frame"}},
	} {
		e := cond.New(cond.Options{Child: child})
		if _, err := eval(t, e, `[1].some(x => x)`, nil); abi.CodeOf(err) != abi.Unavailable {
			t.Errorf("%s: %v", child.Path, err)
		}
		e.Close()
	}
}

func TestCloseEndsChildren(t *testing.T) {
	e := open(t, cond.Options{ChildTimeout: time.Minute})
	if _, err := eval(t, e, `[1].some(x => x)`, nil); err != nil {
		t.Fatal(err)
	}
	pids := e.Pids()
	done := make(chan error)
	go func() {
		_, err := eval(t, e, `(() => { for (;;); })()`, nil)
		done <- err
	}()
	// The evaluation has begun once the idle child is in use.
	for len(e.Pids()) > 0 {
		time.Sleep(time.Millisecond)
	}
	e.Close()
	e.Close()
	if err := <-done; abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("evaluation during Close: %v", err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("child %d is still alive: %v", pid, err)
		}
	}
	if _, err := eval(t, e, `[1].some(x => x)`, nil); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("after Close: %v", err)
	}
	if _, err := eval(t, e, `1`, nil); err != nil {
		t.Errorf("the fast path after Close: %v", err)
	}
}

func TestContext(t *testing.T) {
	e := open(t, cond.Options{ChildTimeout: time.Minute, MaxChildren: 1})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := e.Eval(ctx, "", `(() => { for (;;); })()`, nil)
		done <- err
	}()
	// A second evaluation waits for the only child and ends with its context.
	late, end := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer end()
	for { // until the first one uses the child
		if _, err := e.Eval(late, "", `[1].some(x => x)`, nil); err != nil {
			if abi.CodeOf(err) != abi.Timeout {
				t.Errorf("waiting for a child: %v", err)
			}
			break
		}
	}
	cancel()
	if err := <-done; abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := e.Eval(ctx, "", `1`, nil); abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("started after the end of its context: %v", err)
	}
	if v, err := eval(t, e, `[1].some(x => x)`, nil); err != nil || !v.Truthy {
		t.Errorf("afterwards: %v", err)
	}
}

// TestAgentsLeaveChildren: while evaluations of agents and models, which loop until their limit, have
// all the children that they may have and more of them wait, those of a person and checks are done.
func TestAgentsLeaveChildren(t *testing.T) {
	e := open(t, cond.Options{ChildTimeout: time.Minute, MaxChildren: 2})
	ctx, cancel := context.WithCancel(context.Background())
	var held sync.WaitGroup
	defer held.Wait()
	defer cancel()
	for i := range 12 {
		by := []string{"agent:a", "agent:b", "model"}[i%3]
		held.Go(func() {
			if _, err := e.Eval(ctx, by, `(() => { for (;;); })()`, nil); abi.CodeOf(err) != abi.Cancelled {
				t.Errorf("%s: %v", by, err)
			}
		})
	}
	for e.Waiting("agent:a")+e.Waiting("agent:b")+e.Waiting("model") < 11 {
		time.Sleep(time.Millisecond)
	}
	if v, err := eval(t, e, `[1].some(x => x)`, nil); err != nil || !v.Truthy {
		t.Errorf("a person: %v", err)
	}
	if err := check(e, `[1, 2].some(x => x)`); err != nil {
		t.Errorf("a check: %v", err)
	}
}

// A child that waits for the processor does not use its time, but is not waited
// for without end.
func TestChildThatIsNotScheduled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says how much processor time another process has used")
	}
	const limit = 300 * time.Millisecond
	e := open(t, cond.Options{ChildTimeout: limit})
	for _, stopped := range []time.Duration{3 * limit, time.Hour} {
		if _, err := eval(t, e, `[1].some(x => x)`, nil); err != nil {
			t.Fatal(err)
		}
		pid := e.Pids()[0]
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for state := ""; state != "T"; time.Sleep(time.Millisecond) { // the signal arrives later
			state = processState(t, pid)
		}
		begin := time.Now() // before the timer starts, or the child could continue too early
		resume := time.AfterFunc(stopped, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		_, err := eval(t, e, `[1].some(x => x)`, nil)
		resume.Stop()
		switch wall := time.Since(begin); {
		case stopped == time.Hour && (abi.CodeOf(err) != abi.Timeout || wall < 10*limit):
			t.Errorf("a child that never continues: %v after %s", err, wall)
		case stopped < time.Hour && (err != nil || wall < stopped):
			t.Errorf("a child that continues after %s: %v after %s", stopped, err, wall)
		}
	}
}

// processState returns the letter of proc(5) for what a process does: T, it is stopped.
func processState(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	return fields[:1]
}

// A child that was killed while idle is replaced without an error.
func TestChildKilledWhileIdle(t *testing.T) {
	e := open(t, cond.Options{})
	for range 3 {
		if v, err := eval(t, e, `[1].some(x => x)`, nil); err != nil || !v.Truthy {
			t.Fatal(err)
		}
		for _, pid := range e.Pids() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestChildIsReplaced(t *testing.T) {
	e := open(t, cond.Options{MaxChildren: 1})
	run := func(src string) int {
		_, _ = eval(t, e, src, nil)
		if pids := e.Pids(); len(pids) == 1 {
			return pids[0]
		}
		return 0
	}
	first := run(`[1].some(x => x)`)
	if first == 0 || run(`[2].some(x => x)`) != first {
		t.Error("a child does not serve a second evaluation")
	}
	if run(`[2].some(x => y)`) != first {
		t.Error("a child was replaced after a mistake in the source")
	}
	if run(`[2].some(x => { throw x })`) == first {
		t.Error("a child was not replaced after an exception")
	}
	second := run(`[1].some(x => x)`)
	if run(`'x'.repeat(1.2e8).length`) == second {
		t.Error("a child that has grown is kept")
	}
	e2 := open(t, cond.Options{IdleTimeout: time.Millisecond})
	if _, err := eval(t, e2, `[1].some(x => x)`, nil); err != nil {
		t.Fatal(err)
	}
	for len(e2.Pids()) > 0 { // hangs if it never expires
		time.Sleep(time.Millisecond)
	}
}

// A child inherits nothing: no environment, no open files, no process group.
func TestChildInheritsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	t.Setenv("COND_TEST_SECRET", "hush")
	f, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A file without the close-on-exec flag, as a shell may leave one open.
	leak, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	e := open(t, cond.Options{})
	if _, err := eval(t, e, `[1].some(x => x)`, nil); err != nil {
		t.Fatal(err)
	}
	pid := e.Pids()[0]
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if want := subprocess.Marker + "=cond\x00"; err != nil || string(env) != want {
		t.Errorf("environment %q, %v, want %q", env, err, want)
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) < 3 {
		t.Fatal(fds, err)
	}
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		own := strings.HasPrefix(target, "pipe:") || strings.HasPrefix(target, "anon_inode:") ||
			strings.HasPrefix(target, "/sys/fs/cgroup/") // Go's own, for the number of processors
		if err == nil && !own {
			t.Errorf("open in the child: %s", target)
		}
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("group %d, %v, want its own", group, err)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil || !limited(string(limits), "Max data size") || !limited(string(limits), "Max core file size") {
		t.Errorf("limits: %v\n%s", err, limits)
	}
}

func limited(limits, name string) bool {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return !strings.Contains(rest, "unlimited")
		}
	}
	return false
}

// TestCheckTook: a check says how long it kept a processor busy, in a child too, whether it ended or was killed.
func TestCheckTook(t *testing.T) {
	e := open(t, cond.Options{})
	deep := func(n int) string { return strings.Repeat("((x=", n) + "1" + strings.Repeat(")=>1)", n) }
	var took []time.Duration
	for _, n := range []int{2, 10, 14} {
		d, err := e.Check(t.Context(), deep(n))
		if err != nil {
			t.Fatal(n, err)
		}
		took = append(took, d)
	}
	if took[0] <= 0 || took[2] < 4*took[1] {
		t.Errorf("depths 2, 10 and 14 took %v", took)
	}
	const limit = 100 * time.Millisecond
	e = open(t, cond.Options{ChildTimeout: limit})
	if d, err := e.Check(t.Context(), deep(24)); abi.CodeOf(err) != abi.Timeout || d < limit/2 {
		t.Errorf("depth 24: %v, took %v", err, d)
	}
}
