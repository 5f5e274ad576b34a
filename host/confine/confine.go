// Package confine executes commands that a stranger may have written, such as those of
// acceptance criteria.
//
// A command sees only the variables that it is given, has limits, and ends with all the
// processes that it has started. On Linux it is in user, PID, mount, IPC and UTS namespaces
// of its own, where nothing exists but what is listed: system folders, toolchains and the
// files of /etc that programs need, all read-only; its checkout, a home and a /tmp of its own;
// a /proc that shows its own processes; the harmless part of /dev. It has no capabilities, a
// filter of system calls, and Landlock as a second wall. Where a kernel refuses a part of
// that, the others remain, and [Gaps] names what is missing.
//
// The network is open unless a command says otherwise: tests start servers and fetch
// dependencies.
//
// # How it starts
//
// A confined command is started by this very program, which restricts itself and then
// executes the command. In a PID namespace it stays as process 1: when it ends, the kernel
// ends every process of the namespace at once. A program that links this package does so if
// its environment holds [Marker]; that is looked at while packages are initialised.
package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/pipes"
)

// Marker is the variable that makes a process execute a confined command.
const Marker = "SENTINEL_CONFINE"

// A Command is a program to execute.
type Command struct {
	Shell     string            // a line for /bin/sh -c, or
	Argv      []string          // an absolute program and its arguments
	Dir       string            // working folder, below Root
	Root      string            // the checkout, which it may write
	Folder    fs.FileInfo       // of Root: the command is not executed if another folder is there by then, or a link leads there; nil for no check
	Scratch   string            // absolute folder for HOME, TMPDIR and what the launcher needs
	Env       map[string]string // variables besides PATH, HOME, TMPDIR, LANG and CI=true
	Read      []string          // further files and folders that it may read
	Hide      []string          // files and folders that do not exist for it, also below what it may read; no link below Root
	Outside   []string          // files and folders that Root must neither be nor lie in, without links
	Protect   []string          // files and folders below Root that it may read and not write; no links
	Offline   bool              // it has a network of its own with a loopback interface only
	Require   []string          // walls without which it is not executed; see Walls
	Timeout   time.Duration     // 0 is none but that of the context
	MaxOutput int               // bytes of output that are kept; default 64 KiB
	Limits    Limits
}

// Limits bound a command. Memory, Disk and Processes hold for all its processes together
// where it has a PID namespace, else Memory and Processes for each process or user. The zero
// value has the defaults.
type Limits struct {
	Memory    uint64 // bytes of data; default 8 GiB
	Disk      uint64 // bytes that the command adds to its folders; default 10 GiB
	FileSize  uint64 // bytes of one file; default 4 GiB
	Files     uint64 // open files of a process; default 4096
	Processes uint64 // default 4096; fewer where the user or the container may have few, see ProcessLimit
}

func (l Limits) withDefaults() Limits {
	set := func(at *uint64, value uint64) {
		if *at == 0 {
			*at = value
		}
	}
	set(&l.Memory, 8<<30)
	set(&l.Disk, 10<<30)
	set(&l.FileSize, 4<<30)
	set(&l.Files, 4096)
	set(&l.Processes, 4096)
	return l
}

// A Result is how a command ended.
type Result struct {
	ExitCode int    // 128 and more if a signal ended it
	Signal   string // that ended it
	Output   []byte // standard output and error: the beginning and the end
	Cut      int64  // bytes between them that are missing
	TimedOut bool
	Limit    string // why the command was ended: a limit of the whole command, in words; empty for none
	Duration time.Duration
	Gaps     []Gap // see [Gaps]
}

// A Tree is a program with all the processes that it starts.
type Tree interface {
	Exited() <-chan struct{} // closed when the program has ended
	// End ends all processes and returns how the program ended. The error says that
	// processes may be left. It is called once.
	End() (exitCode int, signal string, err error)
	// Ended is closed when nothing is left. The kernel may take seconds after End to free the memory
	// of processes.
	Ended() <-chan struct{}
	// Root returns the pid of a process above all others, 0 when they have ended.
	Root() int
}

// A Runner starts confined commands. It may be used by several goroutines.
type Runner struct {
	// Start starts a program whose standard output and error are files, below a supervisor
	// that no other program can reach. It honours Cloneflags and AmbientCaps of cmd.SysProcAttr, and
	// maps the user and group of this process to themselves in a new user namespace.
	Start func(cmd *exec.Cmd) (Tree, error)
}

// A Process is a command that is being executed.
type Process struct {
	tree   Tree
	output *excerpt
	began  time.Time
	done   chan struct{} // closed when the command has ended, and all that it started was killed
	stop   func()        // orders the end

	launch  *Launch
	ordered bool   // the end was ordered from here
	result  Result // read behind done
	err     error
}

// Done is closed when the command has ended, and all that it started was killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns the output so far.
func (p *Process) Output() []byte { text, _ := p.output.text(); return text }

// Root returns the pid of a process of this machine above all others of the command, 0 when they
// have ended.
func (p *Process) Root() int { return p.tree.Root() }

// Stop ends the command and all that it started, and returns when it has ended.
func (p *Process) Stop() {
	p.stop()
	<-p.done
}

// Wait returns how the command ended. The error says that it could not be executed.
func (p *Process) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

// Run executes a command to its end. A command that fails is a result; the error says
// that it could not be executed, or is that of ctx.
func (r Runner) Run(ctx context.Context, c Command) (Result, error) {
	p, err := r.Begin(ctx, c)
	if err != nil {
		return Result{}, err
	}
	result, err := p.Wait()
	if ctx.Err() != nil {
		return result, context.Cause(ctx)
	}
	return result, err
}

// dying has a channel for each command whose result is known while the kernel still ends processes of it,
// which is closed when it has ended them.
var dying struct {
	sync.Mutex
	list []chan struct{}
}

// die notes a command that is dying, until ended is called.
func die() (ended func()) {
	dying.Lock()
	defer dying.Unlock()
	one := make(chan struct{})
	dying.list = append(dying.list, one)
	return func() {
		dying.Lock()
		defer dying.Unlock()
		dying.list = slices.DeleteFunc(dying.list, func(o chan struct{}) bool { return o == one })
		close(one)
	}
}

// awaitDying returns when the commands that are dying now have ended: else one that takes the place of
// another could have memory beside it.
func awaitDying(ctx context.Context) error {
	dying.Lock()
	list := slices.Clone(dying.list)
	dying.Unlock()
	for _, one := range list {
		select {
		case <-one:
		case <-ctx.Done():
			return fmt.Errorf("wait until the kernel has ended the processes of an earlier command: %w", context.Cause(ctx))
		}
	}
	return nil
}

// drainTime is how long output is read when all processes have ended: everything that had the
// pipe has, and one that could not be ended must not hold up the result.
const drainTime = 2 * time.Second

// Begin starts a command, which ends with ctx. It waits for what earlier ones have left to the kernel.
func (r Runner) Begin(ctx context.Context, c Command) (*Process, error) {
	if c.MaxOutput == 0 {
		c.MaxOutput = 64 << 10
	}
	if err := awaitDying(ctx); err != nil {
		return nil, err
	}
	cmd, launch, err := Program(&c)
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		launch.Close()
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	p := &Process{output: &excerpt{size: c.MaxOutput}, began: time.Now(), done: make(chan struct{}), launch: launch}
	if p.tree, err = r.Start(cmd); err != nil {
		in.Close()
		launch.Close()
		return nil, err
	}
	ctx, p.stop = context.WithCancel(ctx)
	var read sync.WaitGroup
	read.Go(func() {
		_ = pipes.Copy(in, func(b []byte) error { // an output that cannot be read has ended
			p.output.add(b)
			return nil
		})
	})
	go func() {
		p.follow(ctx, c.Timeout)
		drain, left := drainTime, false
		select {
		case <-p.tree.Ended():
		default: // they were killed, and write no more
			drain, left = 0, true
		}
		pipes.End(in, drain)
		read.Wait()
		in.Close()
		p.result.Output, p.result.Cut = p.output.text()
		p.result.Duration, p.result.Gaps = time.Since(p.began), Gaps()
		p.err = errors.Join(p.err, p.takeStatus())
		if left {
			defer die()()
			close(p.done)
			<-p.tree.Ended()
		} else {
			defer close(p.done)
		}
		launch.Close()
	}()
	return p, nil
}

// A status is what the launcher of a command reports besides its exit code.
type status struct {
	Ended  bool   `json:"ended,omitempty"`  // the launcher has seen the end of the command
	Error  string `json:"error,omitempty"`  // the command was not executed
	Signal string `json:"signal,omitempty"` // that ended the command
	Limit  string `json:"limit,omitempty"`  // that ended the command
}

// commandBegins is the status while a command runs. The report of its end replaces it.
var commandBegins = []byte{'\n'}

// takeStatus completes the result by what the launcher has reported.
func (p *Process) takeStatus() error {
	text, err := os.ReadFile(filepath.Join(p.launch.dir, statusFile))
	if err != nil {
		return err
	}
	if p.result.Limit = p.launch.cgroup.exceeded(); p.result.Limit != "" {
		return nil // the kernel may have ended the launcher too, or the command before the launcher saw why
	}
	var s status
	switch {
	case len(text) > len(commandBegins):
	case !p.launch.stays || p.ordered || p.err != nil: // it became the command, was ended from here, or lost
		return nil
	case len(text) == 0:
		return errors.New("the launcher of the command was ended before it executed the command")
	default:
		// Nothing else can reach it: were it a fault of the machine, a command could choose to have one.
		p.result.Limit = "its launcher, which watches its limits, was ended while it ran: by the command, or because memory was used up"
		return nil
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("status of the launcher: %w", err)
	}
	if s.Error != "" {
		return fmt.Errorf("confine the command: %s", s.Error)
	}
	if p.result.Limit = s.Limit; s.Signal != "" {
		p.result.Signal = s.Signal
	}
	return nil
}

// follow waits for the end of the command, or brings it about.
func (p *Process) follow(ctx context.Context, timeout time.Duration) {
	var late <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-p.tree.Exited():
	case <-late:
		p.result.TimedOut, p.ordered = true, true
	case <-ctx.Done():
		p.ordered = true
	}
	p.result.ExitCode, p.result.Signal, p.err = p.tree.End()
}

// An excerpt keeps the beginning and the end of an output.
type excerpt struct {
	size int

	mu   sync.Mutex
	head []byte
	tail []byte // the newest bytes, at most size of them more than are shown
	cut  int64
}

func (e *excerpt) add(b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if room := e.size/2 - len(e.head); room > 0 {
		n := min(room, len(b))
		e.head, b = append(e.head, b[:n]...), b[n:]
	}
	e.tail = append(e.tail, b...)
	if over := len(e.tail) - e.size; over > 0 { // twice what is shown, so that it is seldom moved
		keep := e.size / 2
		e.cut += int64(len(e.tail) - keep)
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-keep:]...)
	}
}

// text returns what is kept, with a mark where something is missing.
func (e *excerpt) text() (text []byte, cut int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tail, cut := e.tail, e.cut
	if over := len(tail) - e.size/2; over > 0 {
		tail, cut = tail[over:], cut+int64(over)
	}
	text = slices.Clone(e.head)
	if cut > 0 {
		text = fmt.Appendf(text, "\n[%d bytes are missing here]\n", cut)
	}
	return append(text, tail...), cut
}
