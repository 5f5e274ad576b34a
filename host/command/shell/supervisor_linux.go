package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/command/shell/supervise"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// supervisor is a process that owns the trees of executions, one at a time. See
// package supervise.
type supervisor struct {
	cmd   *exec.Cmd
	since uint64 // its start time
	conn  *net.UnixConn
	in    *bufio.Reader
	gone  chan struct{} // closed when it has ended and was reaped
	fresh bool          // nothing went wrong since the last command
}

// How many supervisors of a use wait for another execution. Steps that follow each other need
// one, and a few run side by side: those stay. Steps in many branches need one each for a moment,
// and others take their place: those that none needed for maxSpare end.
const (
	maxIdle  = 4
	maxBusy  = 32
	maxSpare = 5 * time.Second
)

// supervisors are those of a Manager that have no execution now.
//
// # Concurrency
//
// Safe for concurrent use.
type supervisors struct {
	mu     sync.Mutex
	idle   map[use][]*supervisor // those that have waited longest first
	least  map[use]int           // of idle ones since trim was called last
	trims  map[use]bool          // that trim is going to be called
	closed bool
	group  sync.WaitGroup // all that run
}

// A use is what a supervisor serves. What commands do to their supervisor must not reach those
// of another use.
type use int

const (
	steps     use = iota // commands of steps
	contained            // commands of strangers in a PID namespace, which do not see it
	exposed              // other commands of strangers, each with a supervisor of its own
)

// take returns a supervisor, a new one if none is idle. To start one takes a few
// milliseconds, several times as long as to start a command.
func (s *supervisors) take(u use) (*supervisor, error) {
	for {
		s.mu.Lock()
		n := len(s.idle[u])
		if n == 0 {
			s.mu.Unlock()
			return s.start()
		}
		one := s.idle[u][n-1]
		s.idle[u] = s.idle[u][:n-1]
		s.least[u] = min(s.least[u], n-1)
		s.mu.Unlock()
		select {
		case <-one.gone: // killed while it was idle
			one.close()
		default:
			return one, nil
		}
	}
}

// put takes a supervisor back, and ends it if it may have processes.
func (s *supervisors) put(one *supervisor, u use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || u == exposed || len(s.idle[u]) == maxBusy || !one.fresh {
		one.close() // closed already is as good
		return
	}
	if s.idle == nil {
		s.idle, s.least, s.trims = map[use][]*supervisor{}, map[use]int{}, map[use]bool{}
	}
	s.idle[u] = append(s.idle[u], one)
	if len(s.idle[u]) > maxIdle && !s.trims[u] {
		s.startTrim(u)
	}
}

// startTrim calls trim after maxSpare. The caller holds the mutex.
func (s *supervisors) startTrim(u use) {
	s.trims[u] = true
	s.least[u] = len(s.idle[u])
	time.AfterFunc(maxSpare, func() { s.trim(u) })
}

// trim ends supervisors that were idle since it was called last, but for those that stay.
func (s *supervisors) trim(u use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.trims[u] = false
	if n := min(s.least[u], len(s.idle[u])-maxIdle); n > 0 {
		for _, one := range s.idle[u][:n] {
			one.close()
		}
		s.idle[u] = slices.Clone(s.idle[u][n:])
	}
	if len(s.idle[u]) > maxIdle {
		s.startTrim(u)
	}
}

// close ends all that are idle, and returns when none runs. No execution is live, and
// none begins.
func (s *supervisors) close() {
	s.mu.Lock()
	s.closed = true
	for _, list := range s.idle {
		for _, one := range list {
			one.close()
		}
	}
	s.idle = nil
	s.mu.Unlock()
	s.group.Wait()
}

// startGate keeps a supervisor that is just being started from being taken for an
// orphan: starts hold it for reading, a search for orphans holds it for writing.
// Children belong to the whole process, so this does, too, and not to a Manager.
var (
	startGate sync.RWMutex
	running   sync.Map // pids of supervisors
)

// start starts a supervisor. Its environment holds nothing of the host's, because
// commands can read it.
func (s *supervisors) start() (*supervisor, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, supervisorError(err)
	}
	own, its := os.NewFile(uintptr(pair[0]), "host"), os.NewFile(uintptr(pair[1]), "supervisor")
	defer own.Close() // FileConn has a copy
	defer its.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		return nil, supervisorError(err)
	}
	one := &supervisor{conn: conn.(*net.UnixConn), in: bufio.NewReader(conn), gone: make(chan struct{})}
	one.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"shell-supervise"}, Dir: "/", Env: []string{supervise.Marker + "=1"},
		ExtraFiles: []*os.File{its}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // the first extra file is supervise.ConnFD
	}
	startGate.RLock()
	if err = one.cmd.Start(); err == nil {
		running.Store(one.pid(), nil)
	}
	startGate.RUnlock()
	if err != nil {
		one.close()
		return nil, supervisorError(err)
	}
	one.since = startTime(one.pid())
	s.group.Go(one.tend)
	return one, nil
}

// supervisorError is the error of a command that was not started because it has no
// supervisor.
func supervisorError(err error) error {
	e := &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("execute: start supervisor: %v", err)}
	if errors.Is(err, fs.ErrNotExist) {
		e.Hint = "programs are started through /proc/self/exe: mount /proc"
	}
	return e
}

func (s *supervisor) pid() int { return s.cmd.Process.Pid }

// close ends the supervisor and what it owns, and does not wait for it.
func (s *supervisor) close() { _ = s.conn.Close() } // the end of the connection is an order

// tend keeps the supervisor running until it ends, and reaps it: one that its command
// has stopped would never report that the command has ended.
func (s *supervisor) tend() {
	const codeStopped = 5 // CLD_STOPPED
	var info unix.Siginfo
	// The exit is left to Wait; a stop is taken, or it would be seen again.
	for waitFor(unix.P_PID, s.pid(), &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT) == nil && info.Code == codeStopped {
		_ = syscall.Kill(s.pid(), syscall.SIGCONT) // it may have ended
		if waitFor(unix.P_PID, s.pid(), &info, unix.WSTOPPED|unix.WNOHANG) != nil {
			break
		}
	}
	_ = s.cmd.Wait() // its exit status is not used
	running.Delete(s.pid())
	close(s.gone)
}

// waitFor is waitid, also if signals come meanwhile.
func waitFor(kind, id int, info *unix.Siginfo, options int) error {
	for {
		*info = unix.Siginfo{}
		if err := unix.Waitid(kind, id, info, options, nil); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// order sends an order.
func (s *supervisor) order(o byte) {
	_, _ = s.conn.Write([]byte{o}) // one that has ended does not need it
}

// start has the supervisor start a command with three files, and returns its pid and
// start time.
func (s *supervisor) start(spec supervise.Spec, files []*os.File) (pid int, start uint64, err error) {
	s.fresh = false
	text, err := spec.Encode()
	if err != nil {
		return 0, 0, startError(spec.Args[0], syscall.E2BIG)
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if _, _, err = s.conn.WriteMsgUnix([]byte{supervise.OrderStart}, syscall.UnixRights(fds...), nil); err == nil {
		_, err = s.conn.Write(text)
	}
	if err != nil {
		return 0, 0, supervisorError(err)
	}
	kind, numbers, err := s.report()
	switch {
	case err != nil: // the command was faster to kill it than it was to report
		return 0, 0, &abi.Error{
			Code: abi.Interrupted, Permanent: true,
			Message: fmt.Sprintf("execute %q: its supervisor was killed at the start: the program may have run, and processes may be left", spec.Args[0]),
		}
	case kind == supervise.ReportFailed && len(numbers) == 1:
		s.fresh = true // without a command
		return 0, 0, startError(spec.Args[0], &fs.PathError{Op: "start", Path: spec.Path, Err: syscall.Errno(numbers[0])})
	case kind != supervise.ReportStarted || len(numbers) != 2:
		return 0, 0, supervisorError(fmt.Errorf("report %q: not known", kind))
	}
	return numbers[0], uint64(numbers[1]), nil
}

// report reads one line of the supervisor.
func (s *supervisor) report() (kind byte, numbers []int, err error) {
	line, err := s.in.ReadString('\n')
	if err != nil {
		return 0, nil, err
	}
	for _, word := range strings.Fields(line[1:]) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return 0, nil, fmt.Errorf("report %q: %w", line, err)
		}
		numbers = append(numbers, n)
	}
	return line[0], numbers, nil
}

// adopted picks the orphans that came to this process as their subreaper, and what
// is below them. Children that it started itself are in its own session, but for
// supervisors. since is the earliest start time.
func adopted(table []proc, since uint64) (list []proc) {
	self := os.Getpid()
	own, _ := supervise.ProcessOf(self)
	for _, p := range table {
		if _, supervises := running.Load(p.PID); p.Parent == self && p.Session != own.Session && p.Start >= since && !supervises {
			list = append(append(list, p), below(table, p.PID)...)
		}
	}
	return list
}

// reapAdopted takes the exits of orphans that ended after they came to this process.
func reapAdopted() {
	var info unix.Siginfo // stays empty if no child has ended
	if err := waitFor(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG); err != nil || info.Signo == 0 {
		return
	}
	startGate.Lock()
	defer startGate.Unlock()
	for _, p := range adopted(processTable(), 0) {
		if p.Gone() {
			reap(p.PID)
		}
	}
}
