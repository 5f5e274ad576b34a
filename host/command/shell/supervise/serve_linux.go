package supervise

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func init() {
	if os.Getenv(Marker) != "" {
		serve()
	}
}

// supervisor is the state of this process while it has a command.
type supervisor struct {
	exits     chan os.Signal // something ended
	messages  <-chan message
	pid       int  // of the command
	exited    bool // the command was reaped
	killed    int  // processes besides the command
	contained bool // the command is the first process of a PID namespace
}

// serve does what a supervisor is for and ends the process.
func serve() {
	// Files that the host has inherited, and the connection, are not for commands.
	closeOnExec()
	children = openChildren()
	err := mark()
	if err == nil {
		err = BecomeSubreaper()
	}
	if err != nil {
		report(ReportFailed, errnoOf(err))
		os.Exit(1)
	}
	// Handled and thereby harmless; ignored signals would stay ignored in commands.
	stray := make(chan os.Signal, 1)
	signal.Notify(stray, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	exits := make(chan os.Signal, 1)
	signal.Notify(exits, syscall.SIGCHLD)
	messages := make(chan message)
	go receive(messages) // ends with the process
	for m := range messages {
		if m.kind != OrderStart {
			continue // for a command that has ended
		}
		s := &supervisor{exits: exits, messages: messages}
		if len(s.run(m)) > 0 {
			break // children of one command are left, so there must be no other
		}
	}
	os.Exit(0)
}

// run runs a command to the end of its tree. It returns the pids of processes that
// could not be ended.
func (s *supervisor) run(m message) (left []int) {
	before := inherited()
	self, _ := ProcessOf(os.Getpid())
	// A disk that takes no file takes no other trace either: the tree ends with its
	// host all the same, only a host that finds the supervisor killed does not know.
	_ = os.WriteFile(m.spec.File, strconv.AppendUint(append(strconv.AppendInt(nil, int64(self.PID), 10), ' '), self.Start, 10), 0o600)
	err := s.start(m)
	for _, fd := range m.files { // the command has them; a reader must see their end
		_ = syscall.Close(int(fd))
	}
	if err != nil {
		_ = os.Remove(m.spec.File)
		report(ReportFailed, errnoOf(err))
		return nil
	}
	if left = s.follow(); len(left) == 0 {
		_ = os.Remove(m.spec.File) // before the report: the host may have ended
	}
	if inherited() != before {
		report(ReportChanged)
	}
	report(ReportEnded, append([]int{s.killed}, left...)...)
	return left
}

// errnoOf returns the number of an error of a system call.
func errnoOf(err error) int {
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // what system calls return, not wrapped
		return int(errno)
	}
	return int(syscall.EINVAL)
}

// start starts the command in a session of its own, so that no signal to its group
// or session reaches the supervisor.
func (s *supervisor) start(m message) error {
	// Packages are initialised on the main thread, so the death signal comes with the end
	// of the process, not of some thread.
	attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: m.spec.Namespaces}
	if m.spec.Namespaces&syscall.CLONE_NEWUSER != 0 {
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attributes.AmbientCaps = m.spec.Capabilities
	}
	pid, err := syscall.ForkExec(m.spec.Path, m.spec.Args, &syscall.ProcAttr{Dir: m.spec.Dir, Env: m.spec.Env, Files: m.files, Sys: attributes})
	if err != nil {
		return err
	}
	s.pid, s.contained = pid, m.spec.Namespaces&syscall.CLONE_NEWPID != 0
	command, _ := ProcessOf(pid) // not reaped, so it is there
	report(ReportStarted, pid, int(command.Start))
	return nil
}

// follow returns when the tree has ended, with the pids of what could not be ended.
func (s *supervisor) follow() (left []int) {
	for {
		select {
		case <-s.exits:
			if s.reap(); s.exited {
				return s.endAll()
			}
		case m, ok := <-s.messages:
			switch {
			case !ok || m.kind == OrderKill: // the host has ended, or requested it
				return s.endAll()
			case m.kind == OrderTerminate: // not reaped, so the group is still its own
				_ = syscall.Kill(-s.pid, syscall.SIGTERM) // ended already: nothing to ask
				_ = syscall.Kill(-s.pid, syscall.SIGCONT) // a stopped process must run to end
			}
		}
	}
}

// maxReaped bounds how many exits are taken at one time: processes that start others without
// end would keep the supervisor from everything else.
const maxReaped = 256

// reap takes the exits of children that have ended and reports whether none is left. The
// children of a subreaper without children have none either.
func (s *supervisor) reap() (none bool) {
	for range maxReaped {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return true
		case pid == 0:
			return false
		case pid == s.pid:
			s.exited = true
			report(ReportExited, int(status))
		}
	}
	select {
	case s.exits <- syscall.SIGCHLD: // there may be more
	default: // it will be looked at again anyway
	}
	return false
}

// Bounds of ending a tree: how long is waited for a process that was killed, which
// may stand in a call of the kernel, and the pauses in between.
const (
	endTime  = 5 * time.Second
	minPause = 500 * time.Microsecond
	maxPause = 100 * time.Millisecond
)

// endAll ends every descendant and returns the pids of those that are still there
// when it gives up, 0 for what /proc does not show. In a PID namespace the kernel ends them, so
// it does not give up there. Elsewhere it stops the whole tree before it
// kills: a process that is stopped starts no other, so this ends also what forks
// faster than it is found.
func (s *supervisor) endAll() (left []int) {
	began := time.Now()
	seen := map[int]bool{}
	if s.contained { // its end is that of all others, however long the kernel takes for their memory
		_ = syscall.Kill(s.pid, syscall.SIGKILL) // it may have ended
		for !s.reap() {
			<-s.exits
		}
		return nil
	}
	for pause := minPause; !s.reap(); {
		before := len(seen)
		live := stopTree(ownChildren(), seen, nil, began.Add(endTime))
		if len(seen) > before && time.Since(began) < endTime {
			continue // look again, for what was started meanwhile
		}
		if !s.exited { // also without /proc; not reaped, so the group is still its own
			_ = syscall.Kill(-s.pid, syscall.SIGKILL)
		}
		for _, pid := range live {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended; a process without permission is left
		}
		if s.killed = len(seen); seen[s.pid] {
			s.killed--
		}
		if time.Since(began) > endTime {
			s.killed -= len(live)
			if len(live) == 0 {
				live = []int{0}
			}
			return live
		}
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
	}
	return nil
}

// stopTree stops the given children of a process and what is below them, each process before
// it looks for what that one has started. It appends the pids to live and adds them to seen.
// A process whose state cannot be read is taken for one that lives. It returns at the deadline
// at the latest.
func stopTree(children []int, seen map[int]bool, live []int, deadline time.Time) []int {
	for _, child := range children {
		if time.Now().After(deadline) {
			break
		}
		p, ok := ProcessOf(child)
		// Of a process whose first thread has ended the others may live.
		if ok && p.Gone() && len(namesIn("/proc/"+strconv.Itoa(child)+"/task")) < 2 {
			continue
		}
		if !ok || p.State != 'T' {
			if syscall.Kill(child, syscall.SIGSTOP) != nil && !ok { // it has ended
				continue
			}
		}
		seen[child] = true
		live = append(live, child)
		live = stopTree(childrenOf(child), seen, live, deadline)
	}
	return live
}
