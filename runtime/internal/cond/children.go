package cond

import (
	"context"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// children is a bounded pool of child processes.
type children struct {
	opt   Options
	slots *fairqueue.Queue   // a place for each child that may be in use
	ctx   context.Context    // ends with Close
	end   context.CancelFunc // kills the children in use

	mu     sync.Mutex
	idle   []*child
	closed bool
	busy   sync.WaitGroup // requests and expirations under way
}

func newChildren(opt Options) *children {
	ctx, end := context.WithCancel(context.Background())
	return &children{opt: opt, slots: fairqueue.New(opt.MaxChildren), ctx: ctx, end: end}
}

// request makes one request to a child that no other request uses. It waits
// until one is free for its owner; the timeout of the evaluation begins after that. used is the processor
// time of the request, where the system has no clock for a process (not Linux) the time on the wall.
func (l *children) request(ctx context.Context, owner fairqueue.Owner, why string, parts ...string) (v Value, used time.Duration, err *abi.Error) {
	if l.opt.Child.Path == "" {
		e := withHint(errf(abi.Unavailable, "%s needs a child process, but none is configured", why), noChildHint)
		e.Permanent = true
		return Value{}, 0, e
	}
	if !l.acquire() {
		return Value{}, 0, errf(abi.Unavailable, "the evaluator is closed")
	}
	defer l.busy.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errClosed) })()

	leave, ended := l.slots.Enter(ctx, owner)
	if ended != nil {
		return Value{}, 0, contextError(ctx)
	}
	defer leave()
	for {
		c, err := l.get(ctx)
		if err != nil {
			return Value{}, used, err
		}
		warm := c.uses > 0
		frame := appendFrame(nil, parts...)
		limit := l.opt.ChildTimeout + time.Duration(len(frame)/(dataRate/1000))*time.Millisecond
		elapsed := c.clock()
		v, healthy, err := c.evaluate(ctx, limit, frame)
		if !healthy {
			c.Stop()
		}
		if used += elapsed(); healthy {
			l.put(c)
		}
		// If an idle child was killed, retry: the error is not due to this
		// request. A new child is not retried, so the loop ends.
		if err != nil && err.Code == abi.Unavailable && warm {
			continue
		}
		return v, used, err
	}
}

func (l *children) acquire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.busy.Add(1)
	return true
}

// get returns an idle child, or a new one.
func (l *children) get(ctx context.Context) (*child, *abi.Error) {
	l.mu.Lock()
	var c *child
	if n := len(l.idle); n > 0 {
		c = l.idle[n-1]
		l.idle = l.idle[:n-1]
		c.expiry.Stop() // if it has fired, expire does not find c
	}
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return startChild(ctx, l.opt)
}

func (l *children) put(c *child) {
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

// expire stops a child that is still idle.
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

// close stops all children, including those in use, and returns when they have
// ended.
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
