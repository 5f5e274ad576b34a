package shell

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// execution is one program, or several starts of it under one id.
//
// # Concurrency
//
// starting serialises starts. mu guards all below it; it is held while a few
// lines are read from or written to disk, never while a process is waited for.
type execution struct {
	m     *Manager
	id    string
	run   sentinels.RunID
	owner string // who called, if it has no run
	agent string // for whom the run executes, see agentOf

	starting   sync.Mutex
	background bool // no call waits for its end; of the newest start, guarded by m.mu
	pins       int  // starts under way; guarded by m.mu; it is not forgotten meanwhile

	mu      sync.Mutex
	rec     Record
	rules   ruleset
	out     *spill
	refused bool          // the disk did not take some lines, which was reported
	cursor  int           // next line for a watch that names no cursor
	changed chan struct{} // closed and replaced when there is something new
	child   *child        // nil unless it lives

	telling *telling // nil unless its output is reported
}

// reason is why an execution is ended from outside.
type reason int

const (
	reasonNone reason = iota
	reasonKilled
	reasonCancelled
	reasonTimeout
	reasonRunEnded
	reasonClosed
)

// belongsTo reports whether an execution is the caller's: that of its run or, without a run,
// one that it called itself.
func (e *execution) belongsTo(call *command.Call) bool {
	if e.run != "" || call.Run != "" {
		return e.run == call.Run
	}
	return e.owner == call.Who()
}

// visibleTo reports whether a caller that knows the id may read it: those of runs are read by
// all callers, as the traces of runs are, and those without a run by their owner and by persons.
func (e *execution) visibleTo(call *command.Call) bool {
	return call.By == command.ByUser || e.run != "" || e.belongsTo(call)
}

// ownerOf returns the owner of an execution that a caller starts, empty for that of a run.
func ownerOf(call *command.Call) string {
	if call.Run != "" {
		return ""
	}
	return call.Who()
}

// record returns a copy of the record as it is now.
func (e *execution) record() Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rec
}

// isLive reports whether a process tree of it may exist.
func (e *execution) isLive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.child != nil
}

// diskSize returns the bytes its output takes.
func (e *execution) diskSize() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out.size()
}

// root returns the pid above the live processes, or 0.
func (e *execution) root() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.child == nil {
		return 0
	}
	return e.child.proc.root()
}

// stop asks for the end of what lives now; it does not wait. The first reason
// counts.
func (e *execution) stop(why reason) {
	e.mu.Lock()
	c := e.child
	e.mu.Unlock()
	if c != nil {
		c.stop(why)
	}
}

// wait returns when nothing lives, or with ctx.
func (e *execution) wait(ctx context.Context) error {
	e.mu.Lock()
	c := e.child
	e.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// announce wakes everybody who waits for something new. The caller holds mu.
func (e *execution) announce() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// note adds a message of the host.
func (e *execution) note(text string) {
	e.write(chunk{stream: 'h', lines: strings.Count(text, "\n") + 1}, []byte(text+"\n"))
}

// write adds lines. A disk that refuses some is reported once.
func (e *execution) write(c chunk, text []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.ms = time.Now().UnixMilli()
	e.telling.add(text)
	err := e.out.append(c, text)
	if err != nil && !e.refused {
		e.refused = true
		e.m.log.Warn("output cannot be kept: the program continues, and what it prints until the disk takes it again is counted", "execution", e.id, "error", err)
	}
	e.announce()
}

// save stores the record as it is now. The caller holds mu, so that an older
// record never overwrites a newer one.
func (e *execution) save(ctx context.Context) error {
	// A record must be written also when the call it belongs to was cancelled.
	return e.m.store.Save(context.WithoutCancel(ctx), e.rec)
}

// forget deletes output and record.
func (e *execution) forget() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.out.remove(), e.m.store.Delete(context.Background(), e.id))
}
