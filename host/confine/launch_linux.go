package confine

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	switch dir := os.Getenv(Marker); dir {
	case "":
	case probeMarker:
		probeChild()
	default:
		become(dir)
	}
}

// namespaces are those of a confined command.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// start completes a plan by what this machine has and returns the process that executes it:
// this program again.
func start(p *plan) (*exec.Cmd, error) {
	k := kernel()
	p.Alone, p.Landlock, p.Epoll = k.namespaces == nil, k.landlock, epollShare()
	if p.Alone && k.landlock < movesVersion {
		p.Landlock = 0 // as a second wall it is not worth what it breaks
	}
	if p.Offline && !p.Alone {
		return nil, fmt.Errorf("confine: the network cannot be closed: %w", k.namespaces)
	}
	if !p.Alone {
		for _, path := range existing(append(slices.Clone(p.Hide), p.Protect...)) {
			if slices.ContainsFunc(existing(p.Write), func(dir string) bool { return within(path, dir) }) {
				return nil, fmt.Errorf("confine: %s cannot be kept from the command: %w", path, k.namespaces)
			}
		}
	}
	p.Read = append(readable(p.Hide, p.Alone), p.Read...)
	if !p.Alone {
		p.User = processesOfUser("/proc", os.Getuid())
	}
	if p.Alone {
		p.Caches = caches(existing(p.Hide))
	}
	if k.cgroup == nil {
		var err error
		if p.Cgroup, err = newCgroup("/proc", p.Limits); err != nil {
			return nil, fmt.Errorf("confine: make a cgroup: %w", err)
		}
	}
	p.Hide = append(p.Hide, credentials()...)
	if p.Alone {
		p.Hide = append(p.Hide, sockets(slices.Concat(p.Read, p.Write))...)
	}
	if err := p.store(); err != nil {
		return nil, err
	}
	return p.process(), nil
}

func (p *plan) process() *exec.Cmd {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"confine"}, Dir: "/", Env: []string{Marker + "=" + p.Launch}, SysProcAttr: &syscall.SysProcAttr{}}
	if p.Alone {
		cmd.SysProcAttr.Cloneflags = namespaces
		// All of the new user namespace: layers over caches need several. They are dropped before
		// the command is executed.
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			cmd.SysProcAttr.AmbientCaps = append(cmd.SysProcAttr.AmbientCaps, c)
		}
	}
	if p.Offline {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	return cmd
}

// Exit codes of a launcher that has executed nothing.
const exitRefused = 126

// become restricts this process and executes the command of a plan. When something cannot be
// restricted, nothing is executed.
func become(dir string) {
	p, err := loadPlan(dir)
	if err != nil {
		os.Exit(exitRefused)
	}
	// It is opened before the folder is hidden, and the command does not get it.
	report, err := os.OpenFile(filepath.Join(dir, statusFile), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		os.Exit(exitRefused)
	}
	code, s := p.execute(report)
	text, _ := json.Marshal(s)     // texts only
	_, _ = report.WriteAt(text, 0) // without it the launcher was ended
	os.Exit(code)
}

// execute returns how the command ended. Without a PID namespace it returns only when the
// command could not be executed.
func (p *plan) execute(report *os.File) (int, status) {
	refused := func(err error) (int, status) { return exitRefused, status{Error: err.Error()} }
	// Nothing that this process inherited reaches the command.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil && err != unix.ENOSYS {
		return refused(fmt.Errorf("close inherited files: %w", err))
	}
	if p.Cgroup != nil {
		var err error
		if p.events, err = p.Cgroup.enter(); err != nil {
			return refused(fmt.Errorf("enter the cgroup: %w", err))
		}
	}
	if p.Offline {
		if err := p.forward(); err != nil {
			return refused(err)
		}
	}
	// Of all processes, the kernel ends those of a command first when memory runs out. It may refuse.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	if p.Alone {
		if err := p.enter(); err != nil {
			return refused(err)
		}
	}
	if p.Alone {
		if err := reopenInput(); err != nil {
			return refused(err)
		}
	}
	if err := os.Chdir(p.Dir); err != nil {
		return refused(err)
	}
	if err := p.limit(); err != nil {
		return refused(err)
	}
	if p.Landlock > 0 {
		if err := p.restrictFiles(); err != nil {
			return refused(fmt.Errorf("restrict the command by Landlock: %w", err))
		}
	}
	if err := dropPrivileges(); err != nil {
		return refused(err)
	}
	if err := restrictCalls(p.Alone); err != nil {
		return refused(err)
	}
	switch {
	case p.Probe:
		return 0, status{}
	case !p.Alone:
		// Not before: the launcher starts threads.
		if err := lower(unix.RLIMIT_NPROC, p.User+p.Limits.Processes); err != nil {
			return refused(fmt.Errorf("limit of processes: %w", err))
		}
		return refused(syscall.Exec(p.Path, p.Args, p.Env))
	}
	return p.supervise(report)
}

// reopenInput replaces a device on standard input, which is on a mount of the host, by the empty
// one of the command.
func reopenInput() error {
	var s unix.Stat_t
	if err := unix.Fstat(0, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFCHR {
		return err
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Dup3(int(f.Fd()), 0, 0)
}

// launcherMemory is what the launcher itself may need, which has the limit of its command.
const launcherMemory = 1 << 30

// limit lowers the limits of this process, which the command inherits. The limit of processes is
// that of the command alone.
func (p *plan) limit() error {
	for name, limit := range map[int]uint64{
		unix.RLIMIT_DATA: max(p.Limits.Memory, launcherMemory), unix.RLIMIT_FSIZE: p.Limits.FileSize, unix.RLIMIT_NOFILE: filesOf(p.Limits.Files),
		// At 0 the kernel still starts a program of the host that takes core dumps.
		unix.RLIMIT_CORE:       1,
		unix.RLIMIT_SIGPENDING: shareOf(unix.RLIMIT_SIGPENDING, 0), unix.RLIMIT_MSGQUEUE: shareOf(unix.RLIMIT_MSGQUEUE, 0),
		unix.RLIMIT_MEMLOCK: shareOf(unix.RLIMIT_MEMLOCK, leastLocked),
	} {
		if err := lower(name, limit); err != nil {
			return fmt.Errorf("limit %d: %w", name, err)
		}
	}
	return nil
}

// filesOf returns the limit of open files: at most half of the host's. The kernel counts files
// that are sent and not received by user, against the limit of the sender; the host sends files to
// start commands.
func filesOf(limit uint64) uint64 {
	var have syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NOFILE, &have); err != nil {
		return limit
	}
	return min(limit, have.Max/2)
}

// leastLocked is the locked memory that a command may have, in bytes, for keys of programs.
const leastLocked = 64 << 10

// shareOf returns the limit of a command for what the kernel counts by user, over all namespaces: signals
// that wait, timers, message queues, locked memory. The host and the user's other programs need some.
func shareOf(name int, least uint64) uint64 {
	var have syscall.Rlimit
	if err := syscall.Getrlimit(name, &have); err != nil || have.Max == unix.RLIM_INFINITY {
		return unix.RLIM_INFINITY
	}
	return max(have.Max/shareOfWatches, least)
}

// lower lowers a limit, and leaves one that is lower.
func lower(name int, limit uint64) error {
	to, err := lowered(name, limit)
	if err != nil {
		return err
	}
	// That of package syscall: it keeps the program from restoring the limit of open files in
	// processes that it starts.
	return syscall.Setrlimit(name, &to)
}

func lowered(name int, limit uint64) (syscall.Rlimit, error) {
	var have syscall.Rlimit
	err := syscall.Getrlimit(name, &have)
	limit = min(limit, have.Max)
	return syscall.Rlimit{Cur: limit, Max: limit}, err
}

// supervise executes the command as a child of this process, which is the first of its PID
// namespace, and returns when the command has ended or has exceeded a limit. The end of this
// process ends all others of the namespace.
func (p *plan) supervise(report *os.File) (int, status) {
	refused := func(err error) (int, status) {
		return exitRefused, status{Error: fmt.Sprintf("execute %q: %v", p.Path, err)}
	}
	ended, terminate := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	signal.Notify(terminate, syscall.SIGTERM)
	if err := ignoreSignals(); err != nil {
		return refused(err)
	}
	w := p.watcher()
	if _, err := report.WriteAt(commandBegins, 0); err != nil {
		return refused(err)
	}
	pid, err := p.fork()
	if err != nil {
		return refused(err)
	}
	go w.watch() // they end with the process
	go w.watchDisk()
	for {
		select {
		case f := <-w.main:
			f()
		case limit := <-w.exceeded:
			return exitRefused, status{Limit: limit}
		case <-terminate: // the group that it was sent to does not have the command
			_ = syscall.Kill(-pid, syscall.SIGTERM) // it may have ended
			_ = syscall.Kill(-pid, syscall.SIGCONT) // a stopped process must run to end
		case <-ended:
			code, s, done, more := reapUntil(pid)
			if done {
				select {
				case limit := <-w.exceeded: // which ended the command
					return exitRefused, status{Limit: limit}
				default:
				}
				s.Ended = true
				return code, s
			}
			if more {
				select {
				case ended <- syscall.SIGCHLD:
				default: // one is there
				}
			}
		}
	}
}

// maxReaped bounds how many processes are reaped before other events are looked at.
const maxReaped = 256

// reapUntil reaps processes that have ended. It reports how the command ended, if it did, and
// whether there may be more to reap.
func reapUntil(command int) (code int, s status, done, more bool) {
	for range maxReaped {
		var w syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &w, syscall.WNOHANG|syscall.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || pid == 0:
			return 0, s, false, false
		case pid == command && w.Signaled():
			return 128 + int(w.Signal()), status{Signal: w.Signal().String()}, true, false
		case pid == command:
			return w.ExitStatus(), s, true, false
		}
	}
	return 0, s, false, true
}
