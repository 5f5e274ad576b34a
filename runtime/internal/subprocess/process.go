package subprocess

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Process is the parent's side of one helper.
type Process struct {
	In  io.WriteCloser
	Out *bufio.Reader

	cmd  *exec.Cmd
	said tail // stderr: why it ended

	mu   sync.Mutex
	gone bool // waited for: its process id may be another's
}

// Start starts a helper of a kind, in a process group of its own. It must be
// stopped, whatever becomes of it.
func Start(c Command, kind string) (*Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(append([]string{}, c.Env...), Marker+"="+kind)
	cmd.WaitDelay = time.Second // a grandchild that holds stderr does not hold us
	ownGroup(cmd)
	p := &Process{cmd: cmd}
	cmd.Stderr = &p.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.In, p.Out = in, bufio.NewReaderSize(out, 64<<10)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Kill ends the process and its group. It may be called from any goroutine and
// at any time, and does not wait.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		killGroup(p.cmd)
	}
}

// Stop ends the process and returns when it is gone. It may be called again.
func (p *Process) Stop() {
	p.Kill()
	p.mu.Lock()
	gone := p.gone
	p.gone = true
	p.mu.Unlock()
	if gone {
		return
	}
	_ = p.In.Close()
	_ = p.cmd.Wait() // it was killed; how it ended is in what it said
}

// Pid returns the process's id. It may be another's once the process is stopped.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Said returns what the process wrote to stderr, the first 4 KiB. It is whole
// once the process is stopped. Go never dies without a word: a process that said
// nothing and did not end itself was killed from outside.
func (p *Process) Said() string { return p.said.String() }

// Used returns the processor time of a process that is stopped.
func (p *Process) Used() time.Duration {
	if s := p.cmd.ProcessState; s != nil {
		return s.UserTime() + s.SystemTime()
	}
	return 0
}

// outOfMemory is what a helper says that ended itself over memory.
const outOfMemory = "out of memory"

// starved are the ways in which Go dies for want of memory. SIGSEGV is one:
// the collector does not check all it asks for, and nothing in a helper is
// otherwise unsafe.
var starved = []string{
	outOfMemory, "cannot allocate", "failed to allocate", "cannot map", "goroutine stack exceeds", "SIGSEGV", "new OS thread", "pthread_create failed",
}

// Starved reports whether a process that is stopped died of its memory limit.
func (p *Process) Starved() bool {
	said := p.Said()
	for _, words := range starved {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// tail keeps the beginning of what a helper writes to stderr, where Go says why
// it gives up.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), 4096-len(t.text))]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
