package step

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// A Caller is a host call whose work is under way, a command or a turn of a model. The
// context of the work has it, so that a run which the work starts becomes a child of the
// run that calls.
type Caller struct {
	Run Run
	Key string // of the call in this attempt: another attempt of the step has another key
	// Queue is [external.CommandCall.Queue] for the call.
	Queue func(ctx context.Context, reason string, wait func() error) error

	mu      sync.Mutex
	holds   bool // the work holds an execution slot
	outside int  // how many runs the work waits for
}

type callerKey struct{}

// CallerOf returns the host call that ctx is the work of, nil if there is none.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

// enterWork takes an execution slot for the work of a call, and returns the context of the
// work. leave must be called at its end.
func (a *attempt) enterWork(ctx context.Context, c *call) (work context.Context, leave func(), err error) {
	if err := a.run.Enter(ctx); err != nil {
		return nil, nil, err
	}
	caller := &Caller{Run: a.run, Key: a.attemptKey(c), Queue: a.queue(c), holds: true}
	return context.WithValue(ctx, callerKey{}, caller), caller.leave, nil
}

func (c *Caller) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds {
		c.holds = false
		c.Run.Leave()
	}
}

// Outside calls wait, which waits for a run, without the execution slot of the work: the
// run needs one, and as many callers as there are slots would otherwise wait for ever.
func (c *Caller) Outside(ctx context.Context, wait func() error) error {
	c.mu.Lock()
	if c.outside++; c.holds {
		c.holds = false
		c.Run.Leave()
	}
	c.mu.Unlock()
	err := wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outside--; c.outside > 0 || ctx.Err() != nil {
		return err
	}
	if entered := c.Run.Enter(ctx); entered != nil {
		return entered
	}
	c.holds = true
	return err
}

// queue returns [external.CommandCall.Queue] for the work of c.
func (a *attempt) queue(c *call) func(ctx context.Context, reason string, wait func() error) error {
	return func(ctx context.Context, reason string, wait func() error) error {
		defer a.run.ShowQueue(&run.QueueWait{Step: a.address, Reason: reason, Since: time.Now().UTC()})()
		began := a.run.Clock().Elapsed()
		a.mu.Lock()
		c.queue, c.queuedSince = reason, began
		a.mu.Unlock()
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			waited := a.run.Clock().Elapsed() - began
			c.queuedSince = -1
			c.queuedFor += waited
			a.queuedFor += waited
		}()
		if caller := CallerOf(ctx); caller != nil {
			return caller.Outside(ctx, wait)
		}
		return wait()
	}
}

// attemptKey returns a key of a host call that differs between the attempts of the step and
// of the steps around it: a call that is repeated after a crash finds what it has started,
// and a new attempt starts another one.
func (a *attempt) attemptKey(c *call) string {
	return digest(a.callKey(c), fmt.Sprint(a.enclosing), fmt.Sprint(a.n))
}
