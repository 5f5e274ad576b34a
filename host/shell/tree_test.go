//go:build linux

package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// sprawl starts a tree that does its best to stay: a child, a background
// grandchild, one in a session of its own, one that ignores TERM. Each writes
// its pid.
const sprawl = `
me() { echo $1 >> pids; }
sleep 600 & me $!
(sleep 600 & me $!) &
setsid sh -c 'echo $$ >> pids; exec sleep 600' &
setsid sh -c 'trap "" TERM; echo $$ >> pids; sleep 600 & echo $! >> pids; wait' </dev/null >/dev/null 2>&1 &
sh -c 'trap "" TERM HUP; echo $$ >> pids; while true; do sleep 600; done' &
while [ $(wc -l < pids) -lt 6 ]; do sleep 0.01; done
`

// pids returns what sprawl wrote.
func pids(t *testing.T, dir string) (list []int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range strings.Fields(string(data)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// alive returns those that still run, and zombies that are our children.
func alive(list []int) (live, zombies []int) {
	for _, pid := range list {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		switch {
		case fields[0] != "Z":
			live = append(live, pid)
		case fields[1] == strconv.Itoa(os.Getpid()):
			zombies = append(zombies, pid)
		}
	}
	return live, zombies
}

func checkGone(t *testing.T, dir string) {
	t.Helper()
	list := pids(t, dir)
	if len(list) < 6 {
		t.Fatalf("only %d processes began", len(list))
	}
	if live, zombies := alive(list); len(live) > 0 || len(zombies) > 0 {
		t.Errorf("of %v, %v live on and %v are zombies", list, live, zombies)
	}
}

// TestTreeEndsWithItsF16: grandchildren end with what started them, also those
// that left the session or ignore being asked.
func TestTreeEndsWithItsF16(t *testing.T) {
	for _, sub := range []bool{false, true} {
		opt := shell.Options{Grace: 50 * time.Millisecond, Subreaper: sub}
		t.Run(fmt.Sprintf("program, subreaper %v", sub), func(t *testing.T) {
			b := newBench(t, opt)
			if o := b.do("code/shell/execute", params{"command": sprawl + "exit 4"}); *o.ExitCode != 4 {
				t.Errorf("got %+v", o)
			}
			checkGone(t, b.dir)
		})
		t.Run(fmt.Sprintf("call, subreaper %v", sub), func(t *testing.T) {
			b := newBench(t, opt)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // ends once the tree stands
				for {
					if data, err := os.ReadFile(filepath.Join(b.dir, "ready")); err == nil && len(data) > 0 {
						cancel()
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			if _, err := b.call(ctx, "code/shell/execute", command.Call{}, params{"command": sprawl + "echo x > ready; wait"}); abi.CodeOf(err) != abi.Cancelled {
				t.Errorf("got %v", err)
			}
			checkGone(t, b.dir)
		})
		t.Run(fmt.Sprintf("run, subreaper %v", sub), func(t *testing.T) {
			b := newBench(t, opt)
			id := b.do("code/shell/execute", params{"command": sprawl + "echo ready; wait", "wait": false}).ExecutionID
			b.do("code/shell/watch", params{"executionId": id, "until": "match"})
			if mem := b.m.Memory("run-1"); mem < 1<<20 {
				t.Errorf("memory is %d", mem)
			}
			if err := b.m.EndRun(t.Context(), "run-1"); err != nil {
				t.Error(err)
			}
			checkGone(t, b.dir)
			if mem := b.m.Memory("run-1"); mem != 0 {
				t.Errorf("memory is still %d", mem)
			}
		})
		t.Run(fmt.Sprintf("time, subreaper %v", sub), func(t *testing.T) {
			b := newBench(t, opt)
			id := b.do("code/shell/execute", params{"command": sprawl + "wait", "wait": false, "timeoutMs": 1500}).ExecutionID
			if o := b.do("code/shell/watch", params{"executionId": id}); !o.TimedOut || *o.Success {
				t.Errorf("got %+v", o)
			}
			checkGone(t, b.dir)
		})
	}
}

// TestPipeHeldByAnEscapeeDoesNotBlockF15: a daemon that scrubs its environment
// and leaves the session holds the pipe; the call must end all the same.
func TestPipeHeldByAnEscapeeDoesNotBlockF15(t *testing.T) {
	b := newBench(t, shell.Options{})
	o := b.do("code/shell/execute", params{"command": `env -i setsid sh -c 'echo $$ > pids; exec sleep 30' & while [ ! -s pids ]; do sleep 0.01; done; echo done`})
	if !strings.Contains(o.Output, "done") {
		t.Errorf("got %+v", o)
	}
	for _, pid := range pids(t, b.dir) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // only there if it did escape
		}
	}
}

// helperHost is a host process that starts executions and waits to be killed.
func helperHost() {
	m, err := shell.New(shell.Options{Dir: os.Getenv("HELPER_DIR")})
	if err == nil {
		var reg *command.Registry
		if reg, err = command.NewRegistry(shell.Commands(m)...); err == nil {
			_, err = reg.Call(context.Background(), &command.Call{
				Command: "code/shell/execute", By: command.ByStep, Run: "run-1", Key: "key-1", Workspace: os.Getenv("HELPER_WORK"),
				Params: helperParams(),
			})
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	select {}
}

func helperParams() json.RawMessage {
	text, err := json.Marshal(params{"command": sprawl + "echo started; echo ready > ready; wait", "wait": false})
	if err != nil {
		panic(err)
	}
	return text
}

func TestRecoverAfterTheHostWasKilled(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	host := exec.Command(os.Args[0])
	host.Env = append(os.Environ(), "SHELL_TEST_HELPER=host", "HELPER_DIR="+dir, "HELPER_WORK="+work)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if data, err := os.ReadFile(filepath.Join(work, "ready")); err == nil && len(data) > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	// What the program wrote is on its way through the host for a moment.
	for !kept(t, dir, "started") {
		time.Sleep(5 * time.Millisecond)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // killed is what we want
	if live, _ := alive(pids(t, work)); len(live) < 6 {
		t.Fatalf("only %d of the tree outlived the host: the test shows nothing", len(live))
	}
	b := newBench(t, shell.Options{Dir: dir})
	b.dir = work
	left, err := b.m.Recover(t.Context())
	if err != nil || len(left) != 1 || left[0].Run != "run-1" || left[0].Killed < 6 {
		t.Fatalf("got %+v, %v", left, err)
	}
	checkGone(t, work)
	if again, err := b.m.Recover(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("a second time: %v, %v", again, err)
	}
	id := left[0].ID
	lost := b.do("code/shell/watch", params{"executionId": id, "cursor": 0})
	if !lost.Finished || !lost.Lost || lost.ExitCode != nil || *lost.Success || len(lost.Lines) != 2 || lost.Lines[0].Text != "started" {
		t.Errorf("got %+v", lost)
	}
	// The call in doubt, made again: same id, lines so far stay, a gap, new lines.
	again, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "run-1", Key: "key-1"}, params{"command": "echo second"})
	if err != nil || again.ExecutionID != id || again.Output != "second\n" {
		t.Fatalf("got %+v, %v", again, err)
	}
	all := b.do("code/shell/watch", params{"executionId": id, "cursor": 0})
	var streams []string
	for _, l := range all.Lines {
		streams = append(streams, l.Stream)
	}
	if strings.Join(streams, " ") != "stdout host host stdout" || all.Lines[3].Text != "second" {
		t.Errorf("got %+v", all.Lines)
	}
}

// kept reports whether some file of a manager's folder holds the text.
func kept(t *testing.T, dir, text string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && strings.Contains(string(data), text) && !strings.HasSuffix(e.Name(), ".json") {
			return true
		}
	}
	return false
}

// TestRecoverLeavesStrangersAlone: the pid of a record belongs to somebody else.
func TestRecoverLeavesStrangersAlone(t *testing.T) {
	dir := t.TempDir()
	stranger := exec.Command("sleep", "600")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Wait() }()
	defer func() { _ = stranger.Process.Kill() }()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	record, err := json.Marshal(shell.Record{ID: "00112233445566aa", Run: "r", State: shell.Running, BootID: strings.TrimSpace(string(boot)), PID: stranger.Process.Pid, StartTime: 12345, Cookie: "not-there"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00112233445566aa.json"), record, 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, shell.Options{Dir: dir})
	left, err := b.m.Recover(t.Context())
	if err != nil || len(left) != 1 || left[0].Killed != 0 {
		t.Errorf("got %+v, %v", left, err)
	}
	if live, _ := alive([]int{stranger.Process.Pid}); len(live) != 1 {
		t.Error("the stranger was killed")
	}
}
