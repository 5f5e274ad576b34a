package pool

import (
	"context"
	"errors"
	stdruntime "runtime"
	"slices"
	"time"
)

// An Instance is what a pool keeps. Its methods are called by one goroutine at a
// time.
type Instance interface {
	// SetLimit sets the memory limit of the next call in bytes. It reports false if
	// the instance cannot have that limit.
	SetLimit(limit int) bool
	// Close frees the instance.
	Close()
}

// Pool keeps the idle instances of one module, which its calls reuse, the last used
// first. A caller of Take has the instance for itself, and returns it with Put after
// a call without a fault, else with Drop.
//
// Creating an instance takes longer than most calls, so callers that find none idle
// wait in a queue for one that is returned, and few of them create one at a time. The
// wait cannot block for ever: those at the head of the queue create one in the end,
// which depends on no other call.
//
// # Concurrency
//
// It is safe for concurrent use. The lock of its [Idle] guards all pools of a host.
type Pool[T Instance] struct {
	idle  *Idle[T]
	turns chan struct{} // semaphore of callers that create an instance or are the next to

	entries  []*entry[T]  // by the time at which they became idle
	waiters  []*waiter[T] // callers of Take, the first of them first
	used     int          // instances that callers have
	patience time.Duration
	cost     time.Duration // what the creation of the last instance took
	closing  int           // instances that were evicted and are not closed yet
	closed   bool
}

// maxPatience bounds the patience if a creation took long, as on a busy machine.
const maxPatience = 20 * time.Millisecond

// waiter is a caller that waits for an instance.
type waiter[T Instance] struct {
	limit int
	inst  chan T
}

// New returns an empty pool.
func New[T Instance](idle *Idle[T]) *Pool[T] {
	return &Pool[T]{idle: idle, turns: make(chan struct{}, stdruntime.GOMAXPROCS(0))}
}

// Create returns an instance that no call has used, created by create.
func (p *Pool[T]) Create(create func() (T, error)) (inst T, err error) {
	began := time.Now()
	if inst, err = create(); err != nil {
		return inst, err
	}
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	p.used++
	p.cost = min(time.Since(began), maxPatience)
	return inst, nil
}

// Take returns an idle instance whose memory limit can be limit bytes. If there is none
// it waits for one, and creates one if none is returned in time. The error is that of
// create, or the cause of the end of ctx.
func (p *Pool[T]) Take(ctx context.Context, limit int, create func() (T, error)) (inst T, err error) {
	inst, w, ok := p.take(limit)
	if ok {
		return inst, nil
	}
	select {
	case inst = <-w.inst:
		return inst, nil
	case <-ctx.Done():
		return p.leave(w, context.Cause(ctx))
	case p.turns <- struct{}{}:
	}
	defer func() { <-p.turns }()
	if patience := p.nextPatience(); patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case inst = <-w.inst:
			return inst, nil
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	if inst, err = p.leave(w, errNone); !errors.Is(err, errNone) {
		return inst, err
	}
	if ctx.Err() != nil {
		return inst, context.Cause(ctx)
	}
	return p.Create(create)
}

// errNone is the cause of a caller that leaves the queue to create an instance.
var errNone = errors.New("no instance was returned")

// take returns an idle instance, or puts the caller into the queue.
func (p *Pool[T]) take(limit int) (inst T, w *waiter[T], ok bool) {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	for i, e := range slices.Backward(p.entries) {
		if e.instance.SetLimit(limit) {
			p.idle.remove(e, i)
			p.used++
			return e.instance, nil, true
		}
	}
	w = &waiter[T]{limit: limit, inst: make(chan T, 1)}
	p.waiters = append(p.waiters, w)
	return inst, w, false
}

// leave takes a caller out of the queue. It returns the instance that the caller got
// meanwhile, else cause.
func (p *Pool[T]) leave(w *waiter[T], cause error) (inst T, err error) {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	if i := slices.Index(p.waiters, w); i >= 0 {
		p.waiters = slices.Delete(p.waiters, i, i+1)
		return inst, cause
	}
	return <-w.inst, nil
}

// nextPatience returns how long the caller at the head of the queue waits before it
// creates an instance: as long as that takes, which at most doubles the time that it
// waits in vain. Each wait halves it, and a return restores it, so that many calls that
// return nothing do not wait.
func (p *Pool[T]) nextPatience() time.Duration {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	if p.used == 0 {
		return 0
	}
	patience := p.patience
	p.patience /= 2
	return patience
}

// Add puts an instance into the pool that was not taken from it.
func (p *Pool[T]) Add(inst T, bytes int64) {
	p.idle.mu.Lock()
	p.used++
	p.idle.mu.Unlock()
	p.Put(inst, bytes)
}

// Put returns an instance with bytes of linear memory. The first waiting caller that
// can use it gets it; else it becomes idle. Put closes the oldest idle instances of the
// host if they exceed its limit, and inst itself after Close.
func (p *Pool[T]) Put(inst T, bytes int64) {
	p.idle.mu.Lock()
	p.used--
	p.patience = p.cost
	if p.closed || bytes > p.idle.maxBytes {
		p.idle.mu.Unlock()
		inst.Close()
		return
	}
	for i, w := range p.waiters {
		if inst.SetLimit(w.limit) {
			p.waiters = slices.Delete(p.waiters, i, i+1)
			p.used++
			w.inst <- inst
			p.idle.mu.Unlock()
			return
		}
	}
	p.idle.add(&entry[T]{instance: inst, pool: p, bytes: bytes})
	evicted := p.idle.evict(func(*entry[T]) bool { return p.idle.bytes > p.idle.maxBytes })
	p.idle.mu.Unlock()
	p.idle.close(evicted)
}

// Drop closes an instance that is not used again.
func (p *Pool[T]) Drop(inst T) {
	p.idle.mu.Lock()
	p.used--
	p.idle.mu.Unlock()
	inst.Close()
}

// Close closes the idle instances, and makes Put close later ones. No instance of the
// pool is idle, or being closed, when it returns.
func (p *Pool[T]) Close() {
	p.idle.mu.Lock()
	p.closed = true
	var all []*entry[T]
	for len(p.entries) > 0 {
		all = append(all, p.entries[0])
		p.idle.evictOne(p.entries[0])
	}
	p.idle.mu.Unlock()
	p.idle.close(all)
	p.idle.mu.Lock()
	for p.closing > 0 {
		p.idle.changed.Wait()
	}
	p.idle.mu.Unlock()
}
