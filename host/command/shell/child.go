package shell

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/pipes"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// drainTime is how long output is still read once a program and its tree have
// ended. Only a process that could not be ended, or one outside the tree that was
// handed a pipe, can hold the pipes longer.
const drainTime = 2 * time.Second

// ending describes how a process tree was ended.
type ending struct {
	killed int   // processes besides the command
	left   []int // pids of processes that could not be killed
	lost   bool  // the supervisor was killed, so that more may be left
}

// starting describes how a process is started.
type starting struct {
	pool    *supervisors
	file    string // there while the tree may have processes; see supervise.Spec
	cookie  string // in the environment of the command
	adopts  bool   // orphans come to this process
	foreign bool   // strangers may have written the command
}

// child is one start of an execution: the process, and the goroutines around
// it.
type child struct {
	e       *execution
	proc    *process
	readers []*os.File
	ended   func(context.Context) error // called when all processes have ended; nil for none
	read    sync.WaitGroup
	stopped chan struct{} // closed by stop
	once    sync.Once
	why     reason        // set before stopped is closed
	known   chan struct{} // closed when it is known how this start ended, by over at the latest
	result  Record        // how this start ended; set before known is closed
	over    chan struct{} // closed when nothing of it is left
}

// stop asks for the end of the process tree; it does not wait.
func (c *child) stop(why reason) {
	c.once.Do(func() {
		c.why = why
		close(c.stopped)
	})
}

// reason returns why the child was stopped, if it was.
func (c *child) reason() reason {
	select {
	case <-c.stopped:
		return c.why
	default:
		return reasonNone
	}
}

// begin starts the readers of a running process and the goroutine that ends it.
func (c *child) begin(timeout time.Duration) {
	streams := []byte{'o', 'e'}
	for i, f := range c.readers {
		c.read.Go(func() { c.drain(f, streams[i]) })
	}
	go func() { // ended when Close returns
		defer c.e.m.group.Done()
		c.follow(timeout)
	}()
}

// drain reads one stream to its end, even if its lines cannot be kept.
func (c *child) drain(f *os.File, stream byte) {
	s := splitter{redact: c.e.m.opt.Redact}
	keep := func(text []byte, lines int, open bool) {
		c.e.write(chunk{stream: stream, lines: lines, open: open}, text)
	}
	_ = pipes.Copy(f, func(p []byte) error { // a stream that cannot be read has ended
		s.push(p, keep)
		return nil
	})
	s.flush(keep)
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.rec.ZeroBytes += s.zeros
}

// follow waits for the end of the program, or brings it about, and ends what is left
// of its tree.
func (c *child) follow(timeout time.Duration) {
	var limit <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-c.proc.exited:
	case <-limit:
		c.stop(reasonTimeout)
		c.end()
	case <-c.stopped:
		c.end()
	}
	m := c.e.m
	c.report(c.proc.wait(m.closing, c.dying))
	c.readOut(drainTime)
	for _, f := range c.readers {
		_ = f.Close() // read to its end or given up
	}
	if m.opt.Subreaper {
		reapAdopted()
	}
	c.e.finish(c)
}

// readOut returns when the output was read to its end, or for as long as that.
func (c *child) readOut(after time.Duration) {
	for _, f := range c.readers {
		pipes.End(f, after)
	}
	c.read.Wait()
}

// dying gives the result of a program whose processes the kernel takes long to end. They were killed, so
// they write no more. The execution is live until they have ended, so that their memory has a place.
func (c *child) dying() {
	c.readOut(0)
	c.e.m.log.Warn("the kernel takes long to end the processes of an execution, whose memory it frees", "execution", c.e.id, "run", c.e.run)
	code, signal := c.proc.exit()
	c.makeKnown(c.outcome(c.e.record(), code, signal))
}

// finishConfined does what is to be done when all processes of a confined program have ended. If the program
// was stopped, its caller need not wait for that.
func (c *child) finishConfined(code int, signal string) error {
	if c.ended == nil {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- c.ended(c.e.m.closing) }()
	select {
	case err := <-done:
		return err
	case <-c.stopped:
		c.makeKnown(c.outcome(c.e.record(), code, signal))
		return <-done
	}
}

// outcome completes the record of an execution by how this start of it ended.
func (c *child) outcome(r Record, code int, signal string) Record {
	r.State, r.EndedAt, r.ExitCode, r.Signal = Ended, time.Now(), &code, signal
	r.TimedOut = c.reason() == reasonTimeout
	return r
}

// makeKnown gives the result of this start. The first one counts.
func (c *child) makeKnown(r Record) {
	select {
	case <-c.known:
	default:
		c.result = r
		close(c.known)
	}
}

// endWithToken ends a program that no call waits for when the named token that started it was
// revoked or has expired. It returns with the program.
func (c *child) endWithToken(valid func() bool) {
	t := time.NewTicker(principal.RevokeCheck)
	defer t.Stop()
	for {
		select {
		case <-c.over:
			return
		case <-t.C:
		}
		if !valid() {
			c.e.note("[ended: the token that started it was revoked or has expired]")
			c.stop(reasonKilled)
			return
		}
	}
}

// end asks the process group to end, and kills the tree after the grace period.
func (c *child) end() {
	c.proc.terminate()
	t := time.NewTimer(c.e.m.opt.Grace)
	defer t.Stop()
	select {
	case <-c.proc.exited:
	case <-t.C:
		c.proc.kill()
	}
}

// report logs what was ended and what may be left.
func (c *child) report(how ending) {
	log := c.e.m.log
	if how.killed > 0 {
		log.Debug("ended descendants", "execution", c.e.id, "processes", how.killed)
	}
	if len(how.left) > 0 {
		log.Warn("processes of an execution cannot be ended", "execution", c.e.id, "run", c.e.run, "pids", how.left)
		c.e.note(fmt.Sprintf("[processes that cannot be ended are left: %v]", how.left))
	}
	if how.lost {
		log.Warn("supervisor of an execution was killed: processes that left its session may be left", "execution", c.e.id, "run", c.e.run, "ended", how.killed)
		c.e.note("[the supervisor of this execution was killed: processes that it started may be left]")
	}
}
