package shell

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// drainTime is how long output is still read once a program and its tree have
// ended. Only a process that escaped the tree can hold the pipes longer.
const drainTime = 2 * time.Second

// child is one start of an execution: the process, and the goroutines around
// it.
type child struct {
	e       *execution
	cmd     *exec.Cmd
	readers []*os.File
	read    sync.WaitGroup
	stopped chan struct{} // closed by stop
	once    sync.Once
	why     reason // set before stopped is closed
	over    chan struct{}
	result  Record // how this start ended; set before over is closed

	reaping sync.Once
	waitErr error
}

// stop asks the supervisor to end the process tree.
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

// reap waits for the process and frees its pid.
func (c *child) reap() {
	c.reaping.Do(func() { c.waitErr = c.cmd.Wait() })
}

// begin starts the readers and the supervisor of a process that runs.
func (c *child) begin(timeout time.Duration, since uint64) {
	streams := []byte{'o', 'e'}
	for i, f := range c.readers {
		c.read.Go(func() { c.drain(f, streams[i]) })
	}
	go func() { // ended when Close returns
		defer c.e.m.group.Done()
		c.supervise(timeout, since)
	}()
}

// drain reads one stream to its end, whatever becomes of the lines.
func (c *child) drain(f *os.File, stream byte) {
	var s splitter
	var texts []string
	emit := func(text string) { texts = append(texts, text) }
	buffer := make([]byte, 64<<10)
	for {
		n, err := f.Read(buffer)
		s.push(buffer[:n], emit)
		if err != nil {
			s.flush(emit) // the end, or the deadline of a pipe that somebody else holds
		}
		c.e.write(stream, texts)
		texts = texts[:0]
		if err != nil {
			return
		}
	}
}

// supervise waits for the end of the process, or brings it about, and leaves
// nothing of its tree behind.
func (c *child) supervise(timeout time.Duration, since uint64) {
	exited := make(chan struct{})
	go func() { // ends with the process, which is killed below at the latest
		awaitExit(c)
		close(exited)
	}()
	var limit <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-exited:
	case <-limit:
		c.stop(reasonTimeout)
		c.end(exited)
	case <-c.stopped:
		c.end(exited)
	}
	// The leader is a zombie now where the system allows it, so its group
	// still is its group.
	rec := c.e.record()
	killGroup(c.cmd.Process)
	if n := endTree(rec.PID, since, rec.Cookie, true); n > 0 {
		c.e.m.log.Debug("ended descendants", "execution", c.e.id, "processes", n)
	}
	c.reap()
	deadline := time.Now().Add(drainTime)
	for _, f := range c.readers {
		if err := f.SetReadDeadline(deadline); err != nil {
			_ = f.Close() // no deadlines on this system's pipes: stop reading now
		}
	}
	c.read.Wait()
	for _, f := range c.readers {
		_ = f.Close() // read to its end or given up
	}
	c.e.finish(c)
}

// end asks the process group to end, and kills it after the grace.
func (c *child) end(exited <-chan struct{}) {
	terminate(c.cmd.Process)
	t := time.NewTimer(c.e.m.opt.Grace)
	defer t.Stop()
	select {
	case <-exited:
	case <-t.C:
		killGroup(c.cmd.Process)
		<-exited
	}
}
