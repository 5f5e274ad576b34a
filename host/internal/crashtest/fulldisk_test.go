//go:build linux

package crashtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// noWritesVar has a host process begin with a limit of 0 bytes for files: each
// write to a file fails as on a full disk, with EFBIG in place of ENOSPC. It
// needs no rights, so the test runs everywhere.
const noWritesVar = "KILLTEST_NO_WRITES"

// forbidWrites sets the limit if the environment of this process asks for it.
func forbidWrites() error {
	if os.Getenv(noWritesVar) == "" {
		return nil
	}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = 0
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &l)
}

// A server is a process of `sentinel serve`.
type server struct {
	cmd    *exec.Cmd
	state  string
	asks   *http.Client
	stderr *syncBuffer
	ended  chan struct{} // closed when the process has ended; err is why
	err    error
}

// syncBuffer is what the process writes to its standard error.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String returns the end of what was written.
func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.b.String()
	return text[max(0, len(text)-2000):]
}

// serve starts a server on a folder.
func serve(t *testing.T, dir, workspace string, env ...string) *server {
	t.Helper()
	return serveAs(t, nil, dir, workspace, env...)
}

// serveAs is serve as another user, nil for this one.
func serveAs(t *testing.T, user *syscall.Credential, dir, workspace string, env ...string) *server {
	t.Helper()
	o := order{Dir: dir, Workspace: workspace, CLI: []string{"serve", dir, "--listen", "none"}}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	transport := control.Transport(state)
	s := &server{cmd: exec.Command("/proc/self/exe"), state: state, asks: &http.Client{Transport: transport, Timeout: 10 * time.Second}, stderr: &syncBuffer{}}
	s.cmd.Env = append([]string{orderVar + "=" + string(text), "PATH=" + os.Getenv("PATH"), "GOGC=" + os.Getenv("GOGC"), "SENTINEL_TRUST_ROOTS=/", "HOME=" + workspace, lifeVar + "=" + lifeName(1), "SENTINEL_LIMITS_FREE_SPACE=1MB"}, env...)
	s.cmd.Dir = workspace
	s.cmd.Stderr = s.stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	s.ended = make(chan struct{})
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		s.err = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
	})
	return s
}

// ready asks /ready and returns the status in a word, "" while no process answers.
func (s *server) ready() string {
	res, err := s.asks.Get("http://sentinel/ready")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return ""
	}
	var answer struct{ Status string }
	_ = json.Unmarshal(text, &answer) // an answer that is not JSON has no status
	return answer.Status
}

// until waits until /ready has one of the statuses.
func (s *server) until(t *testing.T, wanted ...string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		select {
		case <-s.ended:
			t.Fatalf("the process ended, %v: %s", s.err, s.stderr)
		default:
		}
		last = s.ready()
		for _, w := range wanted {
			if last == w {
				return
			}
		}
	}
	t.Fatalf("/ready is %q, want one of %q; the process printed\n%s", last, wanted, s.stderr)
}

func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if <-s.ended; s.err != nil {
		t.Fatalf("stop: %v\n%s", s.err, s.stderr)
	}
}

// start starts a run and returns its id.
func (s *server) start(t *testing.T, sentinel string) sentinels.RunID {
	t.Helper()
	c := client.Local(s.state)
	var answer struct{ Run sentinels.RunID }
	if err := c.Call(t.Context(), "sentinel/start", map[string]any{"sentinelId": sentinel}, &answer); err != nil {
		t.Fatalf("start: %v\n%s", err, s.stderr)
	}
	return answer.Run
}

// untilRun waits until a run has a status.
func (s *server) untilRun(t *testing.T, id sentinels.RunID, want sentinels.Status) runtime.RunInfo {
	t.Helper()
	c := client.Local(s.state)
	var out struct{ State runtime.RunInfo }
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		err := c.Call(t.Context(), "sentinel/status", map[string]any{"run": id, "brief": true}, &out)
		if err == nil && out.State.Status == want {
			return out.State
		}
	}
	t.Fatalf("run %s is %q, want %q; the process printed\n%s", id, out.State.Status, want, s.stderr)
	return out.State
}

// served makes a folder with a triggered definition and one that runs a program
// that hangs until it gets a signal, and serves it once: afterwards the state
// folder has all that a start finds.
func served(t *testing.T, dir string, killed bool) (sentinel, workspace string, run sentinels.RunID) {
	t.Helper()
	sentinel, workspace = filepath.Join(dir, ".sentinel"), filepath.Join(dir, "work")
	if err := os.MkdirAll(filepath.Join(sentinel, "sentinels"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // ends programs whose host was killed
		_ = os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600)
		for len(strays(t, workspace, 1)) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
	})
	definitions := map[string]string{
		"tick": `{"name":"tick","trigger":{"type":"schedule","cronExpression":"0 4 * * *"},"steps":[{"type":"shell","command":"true"}]}`,
		"hang": fmt.Sprintf(`{"name":"hang","steps":[{"type":"shell","command":"until test -e '%s'; do sleep 0.05; done","onInterrupt":"retry"}]}`, filepath.Join(workspace, "go")),
	}
	for id, text := range definitions {
		if err := os.WriteFile(filepath.Join(sentinel, "sentinels", id+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	warmCache(t, workspace)
	s := serve(t, sentinel, workspace)
	s.until(t, "ok")
	run = s.start(t, "hang")
	s.untilRun(t, run, sentinels.StatusRunning)
	if killed {
		time.Sleep(200 * time.Millisecond) // the program is on
		s.kill(t)
	} else {
		if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.untilRun(t, run, sentinels.StatusCompleted)
		s.stop(t)
	}
	return sentinel, workspace, run
}

// stripState removes what a start would otherwise find written: the first `serve` on
// a state folder that only `run` has used is like this. The token stays: every process
// that opens the store makes it, and without it no client is admitted.
func stripState(t *testing.T, state string) {
	t.Helper()
	for _, name := range []string{"control.sock", "files.json", "ballast", "blobs/tmp", "cache", "logs"} {
		if err := os.RemoveAll(filepath.Join(state, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(filepath.Dir(state), ".gitignore")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// comesBack checks a server that was started without free space: it is up and
// read-only, reports that, refuses what is new, and continues by itself when there
// is space.
func comesBack(t *testing.T, s *server, workspace string, run sentinels.RunID, killed bool, space func()) {
	t.Helper()
	s.until(t, "read_only", "ok") // ok: nothing had to be written so far
	c := client.Local(s.state)
	if err := c.Call(t.Context(), "sentinel/list", map[string]any{}, nil); err != nil {
		t.Errorf("it cannot be read: %v", err)
	}
	// The first write finds out, if none did.
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := c.Call(ctx, "events/emit", map[string]any{"event": "probe"}, nil)
		cancel()
		if err != nil && s.ready() == "read_only" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("/ready is %q and a write gave %v\n%s", s.ready(), err, s.stderr)
		}
	}
	if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	space()
	s.until(t, "ok")
	if killed {
		s.untilRun(t, run, sentinels.StatusCompleted)
	}
	id := s.start(t, "hang")
	s.untilRun(t, id, sentinels.StatusCompleted)
	for _, name := range []string{"control.sock", "files.json"} {
		name := filepath.Join(s.state, name)
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if info, err := os.Stat(name); err == nil && (info.Size() > 0 || info.Mode().Type() == fs.ModeSocket) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s was not written when there was space again\n%s", name, s.stderr)
			}
		}
	}
	s.stop(t)
}

var startsWithoutSpace = []struct {
	name          string
	killed, strip bool
}{
	{"killed before", true, false},
	{"closed before", false, false},
	{"only ever run from the command line", false, true},
}

// TestServeWhileNothingCanBeWritten starts a server that can write to no file.
// No write on the way to /ready is fatal, whatever the last process left.
func TestServeWhileNothingCanBeWritten(t *testing.T) {
	for _, c := range startsWithoutSpace {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			sentinel, workspace, run := served(t, dir, c.killed)
			if c.strip {
				stripState(t, filepath.Join(sentinel, "state"))
			}
			s := serve(t, sentinel, workspace, noWritesVar+"=1")
			comesBack(t, s, workspace, run, c.killed, func() {
				all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
				if err := unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_FSIZE, &all, nil); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestServeOnAFullDisk is the same on a file system without space, where no
// folder and no socket can be made either.
func TestServeOnAFullDisk(t *testing.T) {
	for _, c := range startsWithoutSpace {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.strip {
				t.Skip("kills of processes take long: skipped with -short")
			}
			dir := t.TempDir()
			if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "none", dir).CombinedOutput(); err != nil {
				t.Skipf("cannot mount a small file system here: %v: %s", err, out)
			}
			t.Cleanup(func() {
				if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
					t.Errorf("umount: %v: %s", err, out)
				}
			})
			sentinel, workspace, run := served(t, dir, c.killed)
			if c.strip {
				stripState(t, filepath.Join(sentinel, "state"))
			}
			filler := filepath.Join(dir, "filler")
			fillDisk(t, filler)
			s := serve(t, sentinel, workspace, "TMPDIR="+dir)
			comesBack(t, s, workspace, run, c.killed, func() {
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// fillDisk writes until there is no space left, to the last byte.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				if !strings.Contains(err.Error(), "no space") {
					t.Fatal(err)
				}
				break
			}
		}
	}
}

// TestServeOnAReadOnlyState: a state folder that cannot be written to is refused
// at once, with what is wrong and what to do about it.
func TestServeOnAReadOnlyState(t *testing.T) {
	refused := func(t *testing.T, s *server, cause string) {
		t.Helper()
		select {
		case <-s.ended:
		case <-time.After(time.Minute):
			t.Fatalf("it goes on; /ready is %q and the process printed\n%s", s.ready(), s.stderr)
		}
		said := s.stderr.String()
		for _, part := range []string{"cannot be written to", s.state, cause, "--state", "chmod"} {
			if !strings.Contains(said, part) {
				t.Errorf("%q is missing from what the process printed:\n%s", part, said)
			}
		}
		var exit *exec.ExitError
		if !errors.As(s.err, &exit) || exit.ExitCode() != int(app.ExitDenied) {
			t.Errorf("it ended with %v, want exit code %d", s.err, app.ExitDenied)
		}
	}
	t.Run("mounted read-only", func(t *testing.T) {
		sentinel, workspace, _ := served(t, t.TempDir(), false)
		state := filepath.Join(sentinel, "state")
		for _, args := range [][]string{{"--bind", state, state}, {"-o", "remount,ro,bind", state}} {
			if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
				t.Skipf("cannot mount here: %v: %s", err, out)
			}
			t.Cleanup(func() { _ = exec.Command("umount", state).Run() }) // the second finds nothing left
		}
		refused(t, serve(t, sentinel, workspace), "read-only file system")
	})
	t.Run("mode 0500", func(t *testing.T) {
		sentinel, workspace, _ := served(t, t.TempDir(), false)
		var user *syscall.Credential
		if os.Geteuid() == 0 { // modes do not bind root
			user = &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}
			if out, err := exec.Command("chown", "-R", "65534", filepath.Dir(sentinel)).CombinedOutput(); err != nil {
				t.Skipf("cannot give the folder to another user: %v: %s", err, out)
			}
			if err := os.Chmod(filepath.Dir(filepath.Dir(sentinel)), 0o755); err != nil { // of t.TempDir
				t.Fatal(err)
			}
		}
		state := filepath.Join(sentinel, "state")
		if err := os.Chmod(state, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(state, 0o700) })
		refused(t, serveAs(t, user, sentinel, workspace), "permission denied")
	})
}
