package pool

import "slices"

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
// a call without a fault.
//
// # Concurrency
//
// It is safe for concurrent use. The lock of its [Idle] guards all pools of a host.
type Pool[T Instance] struct {
	idle *Idle[T]

	entries []*entry[T] // by the time at which they became idle
	closing int         // instances that were evicted and are not closed yet
	closed  bool
}

// New returns an empty pool.
func New[T Instance](idle *Idle[T]) *Pool[T] { return &Pool[T]{idle: idle} }

// Take returns an idle instance whose memory limit can be limit bytes. ok is false if
// there is none.
func (p *Pool[T]) Take(limit int) (inst T, ok bool) {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	for i, e := range slices.Backward(p.entries) {
		if e.instance.SetLimit(limit) {
			p.idle.remove(e, i)
			return e.instance, true
		}
	}
	return inst, false
}

// Put makes an instance with bytes of linear memory idle. It closes the oldest idle
// instances of the host if they exceed its limit, and inst itself after Close.
func (p *Pool[T]) Put(inst T, bytes int64) {
	p.idle.mu.Lock()
	if p.closed || bytes > p.idle.maxBytes {
		p.idle.mu.Unlock()
		inst.Close()
		return
	}
	p.idle.add(&entry[T]{instance: inst, pool: p, bytes: bytes})
	evicted := p.idle.evict(func(*entry[T]) bool { return p.idle.bytes > p.idle.maxBytes })
	p.idle.mu.Unlock()
	p.idle.close(evicted)
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
