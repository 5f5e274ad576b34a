// Package confine executes commands that a stranger may have written, such as those of
// acceptance criteria.
//
// A command sees only the variables that it is given. HOME and TMPDIR are folders of
// its own. Its processes are ended with it, also those that left its group and session.
// They have limits of memory, file size, open files and processes. Where the kernel has
// Landlock, they write only below the checkout and those folders, and read besides them
// only the folders of the system, those of PATH, and toolchains that version managers keep
// in the user's home: not the rest of it. [Missing] says what a machine cannot keep
// commands from.
//
// The network is not restricted: tests start servers and fetch dependencies.
//
// # How it starts
//
// A confined command is started by this very program, which restricts itself and then
// executes the command. A program that links this package does so if its environment
// holds [Marker]; that is looked at while packages are initialised.
package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Marker is the variable that makes a process execute a confined command.
const Marker = "SENTINEL_CONFINE"

// A Command is a shell line to execute.
type Command struct {
	Shell     string            // for /bin/sh -c
	Dir       string            // working folder, below Root
	Root      string            // the checkout, which it may write
	Scratch   string            // folder for HOME and TMPDIR, which it may write
	Env       map[string]string // variables besides PATH, HOME, TMPDIR, LANG and CI=true
	Read      []string          // further files and folders that it may read
	Timeout   time.Duration     // 0 is none but that of the context
	MaxOutput int               // bytes of output that are kept; default 64 KiB
	Limits    Limits
}

// Limits bound each process of a command. The zero value has the defaults.
type Limits struct {
	Memory    uint64 // bytes of data; default 8 GiB
	FileSize  uint64 // bytes of one file; default 4 GiB
	Files     uint64 // open files; default 4096
	Processes uint64 // processes of the user, this program's included; default 8192. The superuser has no limit
}

func (l Limits) withDefaults() Limits {
	set := func(at *uint64, value uint64) {
		if *at == 0 {
			*at = value
		}
	}
	set(&l.Memory, 8<<30)
	set(&l.FileSize, 4<<30)
	set(&l.Files, 4096)
	set(&l.Processes, 8192)
	return l
}

// A Result is how a command ended.
type Result struct {
	ExitCode int    // -1 if a signal ended it
	Signal   string // that ended it
	Output   []byte // standard output and error: the beginning and the end
	Cut      int64  // bytes between them that are missing
	TimedOut bool
	Duration time.Duration
	Missing  []string // see [Missing]
}

// A Tree is a program with all the processes that it starts.
type Tree interface {
	Exited() <-chan struct{}            // closed when the program has ended
	End() (exitCode int, signal string) // ends all processes; called once
}

// A Runner starts confined commands. It may be used by several goroutines.
type Runner struct {
	// Start starts a program whose standard output and error are files.
	Start func(cmd *exec.Cmd) (Tree, error)
}

// A Process is a command that is being executed.
type Process struct {
	tree   Tree
	output *excerpt
	began  time.Time
	done   chan struct{} // closed when the command has ended, and all that it started
	stop   func()        // orders the end
	result Result        // read behind done
	err    error
}

// Done is closed when the command has ended, and all that it started.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns the output so far.
func (p *Process) Output() []byte { text, _ := p.output.text(); return text }

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

// Begin starts a command, which ends with ctx.
func (r Runner) Begin(ctx context.Context, c Command) (*Process, error) {
	if c.MaxOutput == 0 {
		c.MaxOutput = 64 << 10
	}
	refused := c.Scratch + ".refused" // beside what the command may write
	if err := os.Remove(refused); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	cmd, err := c.program(refused)
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	p := &Process{output: &excerpt{size: c.MaxOutput}, began: time.Now(), done: make(chan struct{})}
	if p.tree, err = r.Start(cmd); err != nil {
		in.Close()
		return nil, err
	}
	ctx, p.stop = context.WithCancel(ctx)
	var read sync.WaitGroup
	read.Go(func() { p.output.readFrom(in) })
	go func() {
		defer close(p.done)
		p.follow(ctx, c.Timeout)
		// Everything that had the pipe has ended; a process that could not be ended
		// must not hold up the result.
		_ = in.SetReadDeadline(time.Now().Add(2 * time.Second))
		read.Wait()
		in.Close()
		p.result.Output, p.result.Cut = p.output.text()
		p.result.Duration, p.result.Missing = time.Since(p.began), Missing()
		if text, err := os.ReadFile(refused); err == nil && len(text) > 0 {
			p.err = fmt.Errorf("confine the command: %s", text)
		}
		_ = os.Remove(refused) // the folder above is removed in any case
	}()
	return p, nil
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
		p.result.TimedOut = true
	case <-ctx.Done():
	}
	p.result.ExitCode, p.result.Signal = p.tree.End()
}

// A plan is what a process does before it executes a command.
type plan struct {
	Path    string   `json:"path"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
	Write   []string `json:"write"`
	Read    []string `json:"read"`
	Limits  Limits   `json:"limits"`
	Refused string   `json:"refused"` // file for the reason why the command was not executed
}

// program returns the process that executes c.
func (c Command) program(refused string) (*exec.Cmd, error) {
	if !filepath.IsAbs(c.Root) || !filepath.IsAbs(c.Scratch) {
		return nil, fmt.Errorf("confine: %q and %q: want absolute paths", c.Root, c.Scratch)
	}
	home, tmp := filepath.Join(c.Scratch, "home"), filepath.Join(c.Scratch, "tmp")
	for _, dir := range []string{home, tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	// Shims of rustup look for their toolchains in the home, which is another one here.
	if dir := rustup(); dir != "" && c.Env["RUSTUP_HOME"] == "" {
		c.Env = maps.Clone(c.Env)
		if c.Env == nil {
			c.Env = map[string]string{}
		}
		c.Env["RUSTUP_HOME"] = dir
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "LANG=C.UTF-8", "CI=true", "PWD=" + c.Dir}
	for name, value := range c.Env {
		if strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") || slices.Contains([]string{"HOME", "TMPDIR", Marker}, name) {
			return nil, fmt.Errorf("confine: variable %q cannot be given to a command", name)
		}
		env = append(env, name+"="+value)
	}
	text, err := json.Marshal(plan{
		Path: "/bin/sh", Args: []string{"sh", "-c", c.Shell}, Env: env, Dir: c.Dir, Write: []string{c.Root, c.Scratch},
		Read: append(readable(), c.Read...), Limits: c.Limits.withDefaults(), Refused: refused,
	})
	if err != nil {
		return nil, err
	}
	return start(string(text))
}

// rustup returns the folder of the toolchains of rustup, if there is one.
func rustup() string {
	dir := os.Getenv("RUSTUP_HOME")
	if home, err := os.UserHomeDir(); err == nil && dir == "" {
		dir = filepath.Join(home, ".rustup")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// An excerpt keeps the beginning and the end of an output.
type excerpt struct {
	size int

	mu   sync.Mutex
	head []byte
	tail []byte // the newest bytes, at most size of them more than are shown
	cut  int64
}

func (e *excerpt) readFrom(f *os.File) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := f.Read(buffer)
		e.add(buffer[:n])
		if err != nil {
			return
		}
	}
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
