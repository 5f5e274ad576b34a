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

	cmd    *exec.Cmd
	stderr stderrHead // stderr, which has the reason why the helper ended

	mu   sync.Mutex
	gone bool // the process was waited for, so its pid may belong to another one
}

// Start starts a helper of the given kind, in a process group of its own. The
// caller must call [Process.Stop] in every case.
func Start(c Command, kind string) (*Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(append([]string{}, c.Env...), Marker+"="+kind)
	cmd.WaitDelay = time.Second // Wait does not block on a grandchild that keeps stderr open
	ownGroup(cmd)
	p := &Process{cmd: cmd}
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		_ = in.Close() // descriptors have run out, so do not leak this one
		return nil, err
	}
	p.In, p.Out = in, bufio.NewReaderSize(out, 64<<10)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Kill kills the process and its group without waiting for them.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		killGroup(p.cmd)
	}
}

// Stop kills the process and returns when it has ended. It may be called again.
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
	_ = p.cmd.Wait() // it was killed; stderr has the reason of an earlier end
}

// Pid returns the process id. After Stop it may belong to another process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stderr returns the first 4 KiB of what the process wrote to stderr. The text is
// complete after Stop. A Go program always writes something before it crashes,
// so a process that wrote nothing and did not exit by itself was killed from
// outside.
func (p *Process) Stderr() string { return p.stderr.String() }

// CPUTime returns the processor time of a stopped process, zero before.
func (p *Process) CPUTime() time.Duration {
	if s := p.cmd.ProcessState; s != nil {
		return s.UserTime() + s.SystemTime()
	}
	return 0
}

// CPUTimeNow returns the processor time that the process has used so far. It is
// false where the system does not say, which is every one but Linux, and after
// the process has ended.
func (p *Process) CPUTimeNow() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0, false
	}
	return cpuTime(p.Pid())
}

// outOfMemory is what a helper writes to stderr before it exits because of its
// memory limit.
const outOfMemory = "out of memory"

// outOfMemoryTexts lists the texts with which Go crashes when memory runs out. SIGSEGV
// is among them: Go's runtime does not check every allocation, and a helper has
// no other unsafe code.
var outOfMemoryTexts = []string{
	outOfMemory, "cannot allocate", "failed to allocate", "cannot map", "goroutine stack exceeds", "SIGSEGV", "new OS thread", "pthread_create failed",
}

// OutOfMemory reports whether a stopped process ended because of its memory limit.
func (p *Process) OutOfMemory() bool {
	stderr := p.Stderr()
	for _, text := range outOfMemoryTexts {
		if strings.Contains(stderr, text) {
			return true
		}
	}
	return false
}

// stderrHead keeps the first 4 KiB of stderr, where Go writes why it crashes.
type stderrHead struct {
	mu   sync.Mutex
	text []byte
}

func (t *stderrHead) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), 4096-len(t.text))]...)
	return len(p), nil
}

func (t *stderrHead) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
