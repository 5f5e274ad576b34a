package shell

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command/shell/supervise"
)

// process is a running command below a supervisor, which owns all that the command
// starts.
//
// # Concurrency
//
// Safe for concurrent use. What listen sets is read behind exited and ended.
type process struct {
	pid   int    // of the command
	start uint64 // start time of the command

	how starting
	use use
	in  *os.File // what the command reads is written here, nil for nothing

	mu sync.Mutex  // guards s, which is not ours any more after wait
	s  *supervisor // nil then

	exited  chan struct{} // closed when the command has ended, or the supervisor has
	ended   chan struct{} // closed when the tree has ended, or the supervisor has
	status  syscall.WaitStatus
	known   bool  // status is that of the command
	killed  int   // processes besides the command
	left    []int // pids of processes that could not be killed
	changed bool  // what the next command of the supervisor would inherit
	whole   bool  // the supervisor has reported the end of the tree
}

// startProcess starts the command of cmd below a supervisor.
func startProcess(cmd *exec.Cmd, how starting) (*process, error) {
	p := &process{how: how, exited: make(chan struct{}), ended: make(chan struct{})}
	input, err := p.input(cmd.Stdin)
	if err != nil {
		return nil, startError(cmd.Args[0], err)
	}
	defer input.Close() // the command has it by then
	spec := supervise.Spec{File: how.file, Path: cmd.Path, Dir: cmd.Dir, Args: cmd.Args, Env: cmd.Env}
	if how.foreign {
		p.use = exposed
	}
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Cloneflags&syscall.CLONE_NEWPID != 0 {
		p.use = contained
	}
	if cmd.SysProcAttr != nil {
		spec.Namespaces, spec.Capabilities = cmd.SysProcAttr.Cloneflags, cmd.SysProcAttr.AmbientCaps
	}
	files := []*os.File{input, cmd.Stdout.(*os.File), cmd.Stderr.(*os.File)}
	if p.s, err = how.pool.take(p.use); err == nil {
		p.pid, p.start, err = p.s.start(spec, files)
	}
	if err != nil {
		p.closeInput()
		if p.s != nil {
			p.abandon()
		}
		return nil, err
	}
	go p.listen(p.s) // ends with the tree
	return p, nil
}

// abandon gives a supervisor back that has started no command, or ends it with what
// it may have started.
func (p *process) abandon() {
	if !p.s.fresh {
		p.s.close()
		<-p.s.gone
		p.search(p.s)
	}
	p.how.pool.put(p.s, p.use)
}

// search ends what can be found of a tree without its supervisor, and returns how many
// processes it killed.
func (p *process) search(s *supervisor) int {
	killed := endTree(func(table []proc) []proc { return treeOf(table, p.pid, p.start, p.how.cookie) })
	if p.how.adopts {
		startGate.Lock()
		defer startGate.Unlock()
		killed += endTree(func(table []proc) []proc { return adopted(table, s.since) })
	}
	return killed
}

// input returns the file that a command reads, and writes what is in from to it.
func (p *process) input(from io.Reader) (*os.File, error) {
	if from == nil {
		return os.Open(os.DevNull)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.in = w
	go func() { // ends when all is written, or the pipe is closed, by wait at the latest
		_, _ = io.Copy(w, from) // a command need not read its input to the end
		_ = w.Close()
	}()
	return r, nil
}

// closeInput ends the writing of input that the command does not read.
func (p *process) closeInput() {
	if p.in != nil {
		_ = p.in.Close() // closed already is as good
	}
}

// listen takes the reports about one command.
func (p *process) listen(s *supervisor) {
	for !p.whole {
		kind, numbers, err := s.report()
		if err != nil {
			break // it has ended
		}
		switch {
		case kind == supervise.ReportExited && len(numbers) == 1 && !p.known:
			p.status, p.known = syscall.WaitStatus(numbers[0]), true
			close(p.exited)
		case kind == supervise.ReportChanged:
			p.changed = true
		case kind == supervise.ReportEnded && len(numbers) >= 1:
			p.killed, p.left, p.whole = numbers[0], numbers[1:], true
		}
	}
	if !p.whole {
		s.close()
		<-s.gone
	}
	if !p.known {
		close(p.exited)
	}
	close(p.ended)
}

// terminate asks the command's process group to end.
func (p *process) terminate() { p.order(supervise.OrderTerminate) }

// kill ends the whole tree.
func (p *process) kill() { p.order(supervise.OrderKill) }

func (p *process) order(o byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.s != nil { // else it may have another command by now
		p.s.order(o)
	}
}

// superviseTime is how long a supervisor may take to end a tree: its own limit of
// 5 s, and as much again for a busy machine.
const superviseTime = 10 * time.Second

// answerTime is how long a caller waits for the kernel to end a PID namespace. It ends each
// process by itself, and frees its memory before: with many mappings that takes seconds.
const answerTime = 500 * time.Millisecond

// wait returns when nothing of the tree is left that can be ended. It is called once,
// when the command has ended or kill was called. If the kernel takes long to end a PID namespace, it calls
// dying, and from then on the end of closing has it return too.
func (p *process) wait(closing context.Context, dying func()) (e ending) {
	p.mu.Lock()
	s := p.s
	p.mu.Unlock()
	limit, byKernel := superviseTime, false
	select {
	case <-p.exited: // a namespace ends with its first process
	default:
		if byKernel = p.use == contained; byKernel {
			limit = answerTime
		}
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	alone := false // the kernel ends the rest
	select {
	case <-p.ended:
	case <-t.C:
		if byKernel {
			dying()
			select {
			case <-p.ended:
			case <-closing.Done():
				alone = true
				p.end(s)
				_ = os.Remove(p.how.file) // nothing is left to be found
			}
		} else { // it hangs: end it from here, after what is below it
			e.killed += endTree(func(table []proc) []proc { return below(table, s.pid()) })
			p.end(s)
		}
	}
	p.mu.Lock()
	p.s = nil
	p.mu.Unlock()
	p.closeInput()
	switch {
	case alone:
	case !p.whole:
		e.lost = true
		e.killed += p.search(s)
	default:
		s.fresh = len(p.left) == 0 && !p.changed
		p.how.pool.put(s, p.use)
	}
	e.killed, e.left = e.killed+p.killed, p.left
	return e
}

// end ends the supervisor at once.
func (p *process) end(s *supervisor) {
	_ = s.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// exit returns how the command ended; -1 if that is not known. One that the kernel still ends was killed.
func (p *process) exit() (code int, signal string) {
	select {
	case <-p.exited:
	default:
		return exitOf(syscall.WaitStatus(syscall.SIGKILL))
	}
	if !p.known {
		return -1, ""
	}
	return exitOf(p.status)
}

// root is the pid of the process above all those of the command, 0 for none.
func (p *process) root() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.s == nil {
		return 0
	}
	return p.s.pid()
}
