//go:build linux

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// sprawl starts a tree that does its best to stay: a child, a background grandchild,
// two in sessions of their own, two that ignore TERM, one that has neither session,
// environment nor parent in common with the command, and one that keeps moving to new
// processes. Each writes its pid.
const sprawl = `
me() { echo $1 >> pids; }
sleep 600 & me $!
(sleep 600 & me $!) &
setsid sh -c 'echo $$ >> pids; exec sleep 600' &
setsid sh -c 'trap "" TERM; echo $$ >> pids; sleep 600 & echo $! >> pids; wait' </dev/null >/dev/null 2>&1 &
sh -c 'trap "" TERM HUP; echo $$ >> pids; while true; do sleep 600; done' &
env -i setsid sh -c 'env -i setsid sh -c "echo \$\$ >> pids; exec env -i sleep 600" </dev/null >/dev/null 2>&1 &'
echo 'echo $$ > hop; env -i setsid sh hop.sh </dev/null >/dev/null 2>&1 & exit' > hop.sh
env -i setsid sh hop.sh </dev/null >/dev/null 2>&1 &
while [ $(wc -l < pids) -lt 7 ] || [ ! -s hop ]; do sleep 0.01; done
`

// sprawled is how many pids sprawl writes into the file pids.
const sprawled = 7

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
	if len(list) < sprawled {
		t.Fatalf("only %d processes began", len(list))
	}
	if live, zombies := alive(list); len(live) > 0 || len(zombies) > 0 {
		t.Errorf("of %v, %v live on and %v are zombies", list, live, zombies)
	}
	checkStill(t, dir)
}

// checkStill fails if the process that keeps moving still does: it writes its pid at
// every move, so a file that is gone stays so.
func checkStill(t *testing.T, dir string) {
	t.Helper()
	hop := filepath.Join(dir, "hop")
	if err := os.Remove(hop); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // dozens of moves
	if _, err := os.Stat(hop); err == nil {
		t.Error("the process that keeps moving lives on")
		if err := os.Remove(filepath.Join(dir, "hop.sh")); err != nil { // its next move fails
			t.Error(err)
		}
	}
}

// TestTreeEndsWithItsRoot: grandchildren end with what started them, also those
// that left the session or ignore being asked.
func TestTreeEndsWithItsRoot(t *testing.T) {
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
			b.do("code/shell/execute", params{"command": "exec sleep 600", "wait": false})
			o, err := b.call(t.Context(), "code/shell/execute", command.Call{By: command.ByStep, Run: "run-1", Path: "2", Key: "k"}, params{"command": sprawl + "echo ready; wait", "wait": false})
			if err != nil {
				t.Fatal(err)
			}
			b.do("code/shell/watch", params{"executionId": o.ExecutionID, "until": "match"})
			if mem, largest := b.m.Memory("run-1"); mem < 1<<20 || largest != "2" {
				t.Errorf("memory is %d, most of it of step %q", mem, largest)
			}
			if err := b.m.EndRun(t.Context(), "run-1"); err != nil {
				t.Error(err)
			}
			checkGone(t, b.dir)
			if mem, _ := b.m.Memory("run-1"); mem != 0 {
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

// TestPipeHeldByAnEscapeeDoesNotBlock: a daemon that clears its environment and
// leaves the session holds the pipe; the call must end, and the daemon with it.
func TestPipeHeldByAnEscapeeDoesNotBlock(t *testing.T) {
	b := newBench(t, shell.Options{})
	o := b.do("code/shell/execute", params{"command": `env -i setsid sh -c 'echo $$ > pids; exec sleep 600' & while [ ! -s pids ]; do sleep 0.01; done; echo done`})
	if !strings.Contains(o.Output, "done") {
		t.Errorf("got %+v", o)
	}
	if live, _ := alive(pids(t, b.dir)); len(live) > 0 {
		t.Errorf("%v live on", live)
	}
}

// TestSupervisorThatIsStoppedWorksOn: a command may stop its supervisor, but not keep
// it from ending the command.
func TestSupervisorThatIsStoppedWorksOn(t *testing.T) {
	b := newBench(t, shell.Options{Grace: 50 * time.Millisecond})
	id := b.do("code/shell/execute", params{"command": "echo $$ > pids; kill -STOP $PPID; echo stopped; sleep 600", "wait": false}).ExecutionID
	b.do("code/shell/watch", params{"executionId": id, "until": "match"})
	b.do("code/shell/kill", params{"executionId": id})
	if live, _ := alive(pids(t, b.dir)); len(live) > 0 {
		t.Errorf("%v live on", live)
	}
}

// killer leaves a process without anything in common with the command, and ends its
// own supervisor when the file go is there.
const killer = `
env -i setsid sh -c 'env -i setsid sh -c "echo \$\$ >> pids; exec env -i sleep 600" </dev/null >/dev/null 2>&1 &'
while [ ! -s pids ] || [ ! -e go ]; do sleep 0.01; done
kill -KILL $PPID; sleep 600`

// killSupervisor runs killer to its end.
func (b *bench) killSupervisor() out {
	b.t.Helper()
	id := b.do("code/shell/execute", params{"command": killer, "wait": false}).ExecutionID
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o644); err != nil {
		b.t.Fatal(err)
	}
	return b.do("code/shell/watch", params{"executionId": id})
}

// TestSupervisorIsLimited: a command that takes the right to open files from its supervisor is
// ended with all that it started, and no later command inherits what it changed.
func TestSupervisorIsLimited(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skipf("this system has no program prlimit: %v", err)
	}
	b := newBench(t, shell.Options{})
	inherited := "ulimit -n; nice"
	before := b.do("code/shell/execute", params{"command": inherited}).Text
	b.do("code/shell/execute", params{"command": `(setsid sh -c 'echo $$ > pids; exec sleep 600' &); while ! [ -s pids ]; do sleep 0.01; done; prlimit --pid $PPID --nofile=0:0; renice -n 5 -p $PPID >/dev/null`})
	left := pids(t, b.dir)
	if live, _ := alive(left); len(live) > 0 || len(left) != 1 {
		t.Errorf("of %v, %v live on", left, live)
	}
	if after := b.do("code/shell/execute", params{"command": inherited}).Text; after != before {
		t.Errorf("the next command has %q, the first one %q", after, before)
	}
}

// TestSupervisorThatIsKilled: what a supervisor owned comes to the host, if that is a
// subreaper, and is ended there; in any case the output says what happened.
func TestSupervisorThatIsKilled(t *testing.T) {
	b := newBench(t, shell.Options{Subreaper: true})
	if o := b.killSupervisor(); *o.ExitCode != -1 || *o.Success || !strings.Contains(o.Text, "supervisor of this execution was killed") {
		t.Errorf("got %+v", o)
	}
	if live, zombies := alive(pids(t, b.dir)); len(live) > 0 || len(zombies) > 0 {
		t.Errorf("%v live on, %v are zombies", live, zombies)
	}
}

// TestSupervisorThatIsKilledAtTheStart: a command may be faster to kill its supervisor
// than that is to report the start. It has run then, so it must not be tried again.
func TestSupervisorThatIsKilledAtTheStart(t *testing.T) {
	b := newBench(t, shell.Options{Subreaper: true})
	for range 20 {
		_, err := b.call(t.Context(), "code/shell/execute", command.Call{}, params{"argv": []string{"sh", "-c", "setsid sh -c 'echo $$ >> pids; exec sleep 600' & kill -KILL $PPID"}})
		if err != nil && abi.CodeOf(err) != abi.Interrupted {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "pids")); err != nil {
		return // none came so far
	}
	if live, zombies := alive(pids(t, b.dir)); len(live) > 0 || len(zombies) > 0 {
		t.Errorf("%v live on, %v are zombies", live, zombies)
	}
}

// TestOrphansOfOthersStay: a search for the orphans of one execution leaves the
// processes of other executions alone, and children of this program that are none.
func TestOrphansOfOthersStay(t *testing.T) {
	b := newBench(t, shell.Options{Subreaper: true})
	other := b.do("code/shell/execute", params{"command": "echo ready; sleep 600", "wait": false}).ExecutionID
	b.do("code/shell/watch", params{"executionId": other, "until": "match"})
	own := exec.Command("sleep", "600")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Wait() }()
	defer func() { _ = own.Process.Kill() }()
	b.killSupervisor()
	if live, _ := alive([]int{own.Process.Pid}); len(live) != 1 {
		t.Error("a child of this program was killed")
	}
	if !b.do("code/shell/kill", params{"executionId": other}).Killed {
		t.Error("another execution had ended")
	}
}

// TestOrphansAreReaped: an orphan that ends after it came to this process stays no
// zombie for longer than until the next execution has ended.
func TestOrphansAreReaped(t *testing.T) {
	b := newBench(t, shell.Options{Subreaper: true})
	out, err := exec.Command("sh", "-c", "setsid sh -c 'echo $$; exec sleep 0.05' & wait $!; setsid sh -c 'sleep 0.1 & echo $!'").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, f := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	for { // until all have ended
		if live, _ := alive(list); len(live) == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.do("code/shell/execute", params{"command": "true"})
	if _, zombies := alive(list); len(zombies) > 0 {
		t.Errorf("%v of %v are zombies", zombies, list)
	}
}

// TestStartErrorsComeThroughTheSupervisor keeps the errors of a program that does not
// start what they are without one.
func TestStartErrorsComeThroughTheSupervisor(t *testing.T) {
	b := newBench(t, shell.Options{})
	if err := os.WriteFile(filepath.Join(b.dir, "text"), []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "script"), []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		argv []string
		want abi.Code
	}{
		{[]string{"./text"}, abi.Denied}, {[]string{"./script"}, abi.NotFound}, {[]string{"true", strings.Repeat("x", 1<<20)}, abi.Limit},
	} {
		_, err := b.call(t.Context(), "code/shell/execute", command.Call{}, params{"argv": c.argv})
		if abi.CodeOf(err) != c.want {
			t.Errorf("%.20q: got %v, want %s", c.argv, err, c.want)
		}
	}
}

// TestCommandSeesNothingOfTheSupervisor: neither files nor variables of it reach the
// command, nor its handling of signals.
func TestCommandSeesNothingOfTheSupervisor(t *testing.T) {
	b := newBench(t, shell.Options{})
	o := b.do("code/shell/execute", params{"command": `readlink /proc/self/fd/3 /proc/self/fd/4; env | grep SUPERVISE; tr '\0' '\n' < /proc/$PPID/environ | grep -v '^SENTINEL_'; grep -E 'Sig(Ign|Blk)' /proc/self/status`})
	lines := strings.Split(strings.TrimSpace(o.Output), "\n")
	if len(lines) != 2 {
		t.Fatalf("it sees %q, want two masks of signals", lines)
	}
	// Signals that this process was started with as ignored stay so: make, for one,
	// starts programs with an internal signal of its C library ignored. SIGHUP is
	// an exception, as under nohup: commands get its default action.
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var ignored uint64
	if m := regexp.MustCompile(`(?m)^SigIgn:\t(.*)$`).FindStringSubmatch(string(status)); m != nil {
		ignored, err = strconv.ParseUint(m[1], 16, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	ignored &^= 1 << (syscall.SIGHUP - 1)
	if want := []string{"SigBlk:\t0000000000000000", fmt.Sprintf("SigIgn:\t%016x", ignored)}; !slices.Equal(lines, want) {
		t.Errorf("signals: %q, want %q", lines, want)
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
	line := sprawl + "echo started; echo ready > ready; wait"
	if os.Getenv("HELPER_COMMAND") != "" {
		line = os.Getenv("HELPER_COMMAND")
	}
	text, err := json.Marshal(params{"command": line, "wait": false})
	if err != nil {
		panic(err)
	}
	return text
}

// killedHost runs a host that starts a command, and kills it once the command has
// written into the file ready. before, unless nil, is called before that, while the
// host is stopped.
func killedHost(t *testing.T, dir, work, line string, before func()) {
	t.Helper()
	host := exec.Command(os.Args[0])
	host.Env = append(os.Environ(), "SHELL_TEST_HELPER=host", "HELPER_DIR="+dir, "HELPER_WORK="+work, "HELPER_COMMAND="+line)
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
	if before != nil {
		if err := host.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		before()
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // killed is what we want
}

// TestTreeEndsWithTheHost: a host that is killed takes all its executions with it,
// also if no other host is ever started.
func TestTreeEndsWithTheHost(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	killedHost(t, dir, work, "", nil)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if live, _ := alive(pids(t, work)); len(live) == 0 || time.Now().After(end) {
			break
		}
	}
	checkGone(t, work)
}

// TestRecoverReportsWhatIsNotKnown: if the supervisor was killed too, the next host
// cannot tell whether a process is left, and reports that.
func TestRecoverReportsWhatIsNotKnown(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	line := `env -i setsid sh -c 'env -i setsid sh -c "echo \$\$ >> pids; exec env -i sleep 600" </dev/null >/dev/null 2>&1 &'
while [ ! -s pids ]; do sleep 0.01; done
setsid sh -c 'echo $$ >> pids; exec sleep 600' &
while [ $(wc -l < pids) -lt 2 ]; do sleep 0.01; done
echo started; echo $PPID > ready; wait`
	killedHost(t, dir, work, line, func() {
		text, err := os.ReadFile(filepath.Join(work, "ready"))
		if err != nil {
			t.Fatal(err)
		}
		supervisor, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	})
	list := pids(t, work)
	for _, pid := range list {
		defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }() // the first one lives on
	}
	b := newBench(t, shell.Options{Dir: dir})
	left, err := b.m.Recover(t.Context())
	if err != nil || len(left) != 1 || !left[0].Unsure {
		t.Fatalf("got %+v, %v", left, err)
	}
	if live, _ := alive(list[1:]); len(live) > 0 {
		t.Errorf("%v has the cookie and lives on", live)
	}
}

// TestTreesEndForAnotherUser repeats the tests of this file without the rights of
// root, in a process of another user.
func TestTreesEndForAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user; as this one the tests ran already")
	}
	dir, err := os.MkdirTemp("/tmp", "shell-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "shell.test")
	if out, err := exec.Command("cp", os.Args[0], program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const otherUser = 65534
	for _, path := range []string{dir, program} {
		if err := errors.Join(os.Chmod(path, 0o755), os.Chown(path, otherUser, otherUser)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run", "^(TestTree|TestPipe|TestSupervisor|TestOrphans|TestRecover)", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") < 8 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRecoverAfterTheHostWasKilled(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	killedHost(t, dir, work, "", nil)
	b := newBench(t, shell.Options{Dir: dir})
	b.dir = work
	left, err := b.m.Recover(t.Context())
	if err != nil || len(left) != 1 || left[0].Run != "run-1" || left[0].Unsure {
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

// TestRecoverLeavesStrangersAlone: the pid of a record belongs to another process.
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
