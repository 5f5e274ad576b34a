package confine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/confine"
)

// runner starts commands as a host does.
func runner(t testing.TB) confine.Runner {
	t.Helper()
	m, err := shell.New(shell.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return confine.Runner{Start: func(cmd *exec.Cmd) (confine.Tree, error) { return m.StartTree(cmd) }}
}

// command returns a shell line in a checkout of its own.
func command(t testing.TB, line string) confine.Command {
	t.Helper()
	dir := t.TempDir()
	root, scratch := filepath.Join(dir, "tree"), filepath.Join(dir, "scratch")
	for _, d := range []string{root, scratch} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return confine.Command{Shell: line, Dir: root, Root: root, Scratch: scratch, Timeout: time.Minute}
}

func execute(t testing.TB, c confine.Command) confine.Result {
	t.Helper()
	r, err := runner(t).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func needSh(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no /bin/sh on Windows")
	}
}

// needLandlock skips a test where this machine could not pass it.
func needLandlock(t testing.TB) {
	t.Helper()
	needSh(t)
	walls := map[string]bool{}
	for _, g := range confine.Gaps() {
		walls[g.Wall] = strings.Contains(g.Text, "is not in this kernel") || g.Wall == confine.WallNamespaces
	}
	if walls[confine.WallLandlock] && walls[confine.WallNamespaces] || runtime.GOOS != "linux" {
		t.Skip(confine.Gaps())
	}
}

func TestEnvironment(t *testing.T) {
	needSh(t)
	t.Setenv("SENTINEL_SECRET_X", "never seen")
	c := command(t, "env; echo; pwd; exit 3")
	c.Env = map[string]string{"TEST_JWT": "a b'c"}
	r := execute(t, c)
	if r.ExitCode != 3 {
		t.Errorf("exit code %d", r.ExitCode)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(r.Output)), "\n") {
		name, value, _ := strings.Cut(line, "=")
		switch name {
		case "PATH", "LANG", "CI", "RUSTUP_HOME", "PWD", "OLDPWD", "SHLVL", "_", "", c.Dir:
		case "HOME", "TMPDIR":
			if !strings.HasPrefix(value, c.Scratch) {
				t.Errorf("%s", line)
			}
		case "TEST_JWT":
			if value != "a b'c" {
				t.Errorf("%s", line)
			}
		default:
			t.Errorf("the command sees %s", line)
		}
	}
	for name := range map[string]bool{"HOME": true, confine.Marker: true, "A=B": true} {
		c.Env = map[string]string{name: "x"}
		if _, err := runner(t).Run(t.Context(), c); err == nil {
			t.Errorf("variable %q was accepted", name)
		}
	}
}

func TestWritesStayInside(t *testing.T) {
	needLandlock(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("the secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := command(t, strings.ReplaceAll(`
		echo x > in && echo x > $HOME/in && echo x > $TMPDIR/in && mkdir -p a/b && mv in a/b/in && echo inside works
		cat OUT/secret; ls OUT; echo x > OUT/new; echo x >> OUT/secret; : > OUT/secret; rm OUT/secret; mkdir OUT/d; mv OUT/secret stolen
		ln -s OUT link; cat link/secret; echo x > link/new; ln OUT/secret hard; cat hard
		cat /proc/$PPID/environ; cat /root/.bashrc /root/.profile; ls "`+home(t)+`"
		echo x > /tmp/sentinel-confine-test; echo x > ../escaped; touch /dev/shm/sentinel-confine-test; exit 0`, "OUT", outside))
	r := execute(t, c)
	out := string(r.Output)
	if !strings.Contains(out, "inside works") || strings.Contains(out, "the secret") {
		t.Errorf("output:\n%s", out)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: %v %v", entries, err)
	}
	if text, _ := os.ReadFile(filepath.Join(outside, "secret")); string(text) != "the secret" {
		t.Errorf("a file outside was changed: %q", text)
	}
	for _, path := range []string{"/tmp/sentinel-confine-test", "/dev/shm/sentinel-confine-test", filepath.Join(filepath.Dir(c.Root), "escaped")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was written", path)
			_ = os.Remove(path)
		}
	}
}

// Builds move files between folders, and link them.
func TestMovesBetweenFolders(t *testing.T) {
	needSh(t)
	r := execute(t, command(t, `mkdir -p a/b c && echo text > a/b/in && ln a/b/in c/hard && rm a/b/in && mv c/hard a/in && cat a/in`))
	if string(r.Output) != "text\n" {
		t.Errorf("%s", r.Output)
	}
}

func home(t testing.TB) string {
	dir, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A process that leaves its group and session, ignores signals and outlives its parent
// ends with the command.
func TestTreeIsEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends processes that left their group")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not on this machine")
	}
	c := command(t, `setsid sh -c 'trap "" TERM HUP INT; (setsid sh -c "trap \"\" TERM; echo \$\$ > pid; while :; do sleep 0.05; date +%N > alive; done" &)' & while ! [ -s pid ]; do sleep 0.02; done`)
	r := execute(t, c)
	if r.ExitCode != 0 {
		t.Fatalf("%+v %s", r, r.Output)
	}
	pid, err := os.ReadFile(filepath.Join(c.Root, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", strings.TrimSpace(string(pid)))); err == nil && strings.Contains(string(state), "sleep 0.05") {
		t.Errorf("process %s is alive: %s", pid, state)
	}
	before, _ := os.ReadFile(filepath.Join(c.Root, "alive"))
	time.Sleep(300 * time.Millisecond)
	if after, _ := os.ReadFile(filepath.Join(c.Root, "alive")); string(after) != string(before) {
		t.Error("a process is alive")
	}
}

func TestLimits(t *testing.T) {
	needSh(t)
	t.Run("time", func(t *testing.T) {
		c := command(t, "echo begun; sleep 600 & sleep 600")
		c.Timeout = 300 * time.Millisecond
		r := execute(t, c)
		if !r.TimedOut || !strings.Contains(string(r.Output), "begun") || r.Duration > 30*time.Second {
			t.Errorf("%+v", r)
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := runner(t).Run(ctx, command(t, "sleep 600")); err == nil {
			t.Error("no error")
		}
	})
	t.Run("output", func(t *testing.T) {
		c := command(t, "echo first; yes 0123456789 | head -c 30000000; echo last")
		c.MaxOutput = 1000
		r := execute(t, c)
		if len(r.Output) > 1100 || !strings.HasPrefix(string(r.Output), "first\n") || !strings.HasSuffix(string(r.Output), "last\n") || r.Cut < 29_000_000 {
			t.Errorf("%d bytes, %d missing: %.60q ... %.60q", len(r.Output), r.Cut, r.Output, r.Output[max(len(r.Output)-60, 0):])
		}
	})
	if runtime.GOOS != "linux" {
		return
	}
	t.Run("file", func(t *testing.T) {
		c := command(t, "head -c 3000000 /dev/zero > big; wc -c < big")
		c.Limits.FileSize = 1 << 20
		if r := execute(t, c); !strings.Contains(string(r.Output), "1048576") {
			t.Errorf("%s", r.Output)
		}
	})
	t.Run("memory", func(t *testing.T) {
		c := command(t, "head -c 2000000000 /dev/zero | tail -c 1900000000 | wc -c")
		c.Limits.Memory = 1 << 30 // the launcher needs as much
		if r := execute(t, c); strings.Contains(string(r.Output), "1900000000") {
			t.Errorf("%s", r.Output)
		}
	})
	t.Run("open files", func(t *testing.T) {
		c := command(t, "ulimit -n; ulimit -Hn; ulimit -c")
		c.Limits.Files = 100
		if r := execute(t, c); string(r.Output) != "100\n100\n0\n" {
			t.Errorf("%s", r.Output)
		}
	})
	t.Run("forks", func(t *testing.T) {
		c := command(t, `f() { sleep 5 & f2 & }; f2() { sleep 5 & }; for i in $(seq 1 300); do f; done; sleep 600`)
		c.Timeout = 500 * time.Millisecond
		if r := execute(t, c); !r.TimedOut {
			t.Errorf("%+v", r)
		}
	})
}

func TestServiceIsStopped(t *testing.T) {
	needSh(t)
	p, err := runner(t).Begin(t.Context(), command(t, "echo ready; (sleep 600 &); sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(string(p.Output()), "ready") {
		select {
		case <-p.Done():
			t.Fatal(p.Wait())
		case <-time.After(10 * time.Millisecond):
		}
	}
	select {
	case <-p.Done():
		t.Error("it has ended")
	default:
	}
	p.Stop()
	if r, err := p.Wait(); err != nil || r.ExitCode == 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// What cannot be restricted is not executed, and is no result of the command.
func TestRefusedIsAnError(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux restricts")
	}
	c := command(t, "exit 0")
	c.Dir = filepath.Join(c.Root, "none")
	if r, err := runner(t).Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%+v %v", r, err)
	}
}

func BenchmarkRun(b *testing.B) {
	r, c := runner(b), command(b, "true")
	for b.Loop() {
		if _, err := r.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart reports how long it takes until a command is executed, as start-ms.
func BenchmarkStart(b *testing.B) {
	if _, err := exec.LookPath("bash"); err != nil {
		b.Skip("bash is not on this machine")
	}
	r, c := runner(b), command(b, "exec bash -c 'echo $EPOCHREALTIME'")
	var times []float64
	for b.Loop() {
		began := time.Now()
		result, err := r.Run(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		at, err := strconv.ParseFloat(strings.TrimSpace(string(result.Output)), 64)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, at*1e3-float64(began.UnixMicro())/1e3)
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "start-ms")
}
