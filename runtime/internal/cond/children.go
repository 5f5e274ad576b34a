package cond

import (
	"context"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// children is the child lane: a bounded number of processes, kept warm.
type children struct {
	opt   Options
	slots chan struct{}      // one for each that may be in use
	ctx   context.Context    // ends with Close
	end   context.CancelFunc // kills those in use

	mu     sync.Mutex
	idle   []*child
	closed bool
	busy   sync.WaitGroup // requests and expiries under way
}

func newChildren(opt Options) *children {
	ctx, end := context.WithCancel(context.Background())
	return &children{opt: opt, slots: make(chan struct{}, opt.MaxChildren), ctx: ctx, end: end}
}

// ask carries out one request in a child of its own. It waits for one to be
// free; the time for the evaluation begins after that.
func (l *children) ask(ctx context.Context, why string, parts ...string) (Value, *abi.Error) {
	if l.opt.Child.Path == "" {
		e := withHint(errf(abi.Unavailable, "%s needs a child process, and there is none", why), noChildHint)
		e.Permanent = true
		return Value{}, e
	}
	if !l.begin() {
		return Value{}, errf(abi.Unavailable, "the evaluator is closed")
	}
	defer l.busy.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errClosed) })()

	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return Value{}, asContext(ctx)
	}
	defer func() { <-l.slots }()
	for {
		c, err := l.take(ctx)
		if err != nil {
			return Value{}, err
		}
		used := c.uses > 0
		v, healthy, err := c.ask(ctx, l.opt.ChildTimeout, appendFrame(nil, parts...))
		if healthy {
			l.give(c)
		} else {
			c.Stop()
		}
		// One that was killed while it was idle says nothing about this
		// request. A fresh one is not tried twice, so this ends.
		if err != nil && err.Code == abi.Unavailable && used {
			continue
		}
		return v, err
	}
}

func (l *children) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.busy.Add(1)
	return true
}

// take returns an idle child that is alive, or a new one.
func (l *children) take(ctx context.Context) (*child, *abi.Error) {
	l.mu.Lock()
	var c *child
	if n := len(l.idle); n > 0 {
		c = l.idle[n-1]
		l.idle = l.idle[:n-1]
		c.expiry.Stop() // if it fired already, it does not find c any more
	}
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return startChild(ctx, l.opt)
}

func (l *children) give(c *child) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		c.Stop()
		return
	}
	l.idle = append(l.idle, c)
	c.expiry = time.AfterFunc(l.opt.IdleTimeout, func() { l.expire(c) })
	l.mu.Unlock()
}

// expire ends a child that is still idle.
func (l *children) expire(c *child) {
	l.mu.Lock()
	found := false
	for i, other := range l.idle {
		if other == c {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			l.busy.Add(1)
			found = true
			break
		}
	}
	l.mu.Unlock()
	if found {
		c.Stop()
		l.busy.Done()
	}
}

// close ends all children, those in use too, and returns when they are gone.
func (l *children) close() {
	l.mu.Lock()
	idle := l.idle
	l.idle, l.closed = nil, true
	l.mu.Unlock()
	l.end()
	for _, c := range idle {
		c.expiry.Stop()
		c.Stop()
	}
	l.busy.Wait()
}
