package wasm

import (
	"slices"
	"sync"
	"time"
)

// When a pooled instance is closed instead of kept.
const (
	maxCalls    = 1_000
	maxAge      = 10 * time.Minute
	idleTimeout = time.Minute
)

// pool keeps the idle instances of one module, which its calls reuse, the last used
// first. A caller of take has the instance for itself, and returns it with put after
// a call without a fault.
//
// # Concurrency
//
// It is safe for concurrent use. The lock of idle guards all pools of a host.
type pool struct {
	idle *idleInstances

	instances []*instance // idle, by the time at which they became idle
	closing   int         // instances that were evicted and are not closed yet
	closed    bool
}

func newPool(idle *idleInstances) *pool { return &pool{idle: idle} }

// take returns an idle instance whose memory limit can be limit bytes, or nil.
func (p *pool) take(limit int64) *instance {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	for i := len(p.instances) - 1; i >= 0; i-- {
		if inst := p.instances[i]; inst.memories.setLimit(int(limit)) {
			p.idle.remove(inst, i)
			return inst
		}
	}
	return nil
}

// reusable reports whether an instance may serve another call. Text on stderr counts
// as a fault, and memory that has doubled as a leak.
func (p *pool) reusable(inst *instance) bool {
	return inst.exited == nil && len(inst.stderr.tail) == 0 && inst.calls < maxCalls &&
		time.Since(inst.born) < maxAge && inst.memories.size() <= 2*inst.start && inst.memories.growError() == nil
}

// put makes an instance idle. It closes the oldest idle instances of the host if
// they exceed its limit, and inst itself after close.
func (p *pool) put(inst *instance) {
	inst.current, inst.pool, inst.idleBytes = nil, p, inst.memories.total()
	p.idle.mu.Lock()
	if p.closed || inst.idleBytes > p.idle.maxBytes {
		p.idle.mu.Unlock()
		inst.close()
		return
	}
	p.idle.add(inst)
	evicted := p.idle.evict(func(*instance) bool { return p.idle.bytes > p.idle.maxBytes })
	p.idle.mu.Unlock()
	p.idle.close(evicted)
}

// close closes the idle instances, and makes put close later ones. No instance of the
// pool is idle, or being closed, when it returns.
func (p *pool) close() {
	p.idle.mu.Lock()
	p.closed = true
	var all []*instance
	for len(p.instances) > 0 {
		all = append(all, p.instances[0])
		p.idle.evictOne(p.instances[0])
	}
	p.idle.mu.Unlock()
	p.idle.close(all)
	p.idle.mu.Lock()
	for p.closing > 0 {
		p.idle.changed.Wait()
	}
	p.idle.mu.Unlock()
}

// idleInstances limits the idle instances of all pools of a host, by their linear
// memory and by idleTimeout. The oldest are closed first.
//
// Its timer runs only while an instance is idle. Instances are closed without the
// lock, because closing one takes as long as a short call; closing counts them, for
// callers that need their memory or the end of their use.
type idleInstances struct {
	maxBytes int64

	mu             sync.Mutex
	changed        sync.Cond // closing has decreased
	bytes          int64     // of linear memory
	oldest, newest *instance
	closing        int // instances that were evicted and are not closed yet
	timer          *time.Timer
}

func newIdleInstances(maxBytes int64) *idleInstances {
	idle := &idleInstances{maxBytes: maxBytes}
	idle.changed.L = &idle.mu
	return idle
}

// add appends an instance to the list and to its pool. The caller holds the lock.
func (idle *idleInstances) add(inst *instance) {
	inst.idleSince = time.Now()
	inst.older, inst.newer = idle.newest, nil
	if idle.newest != nil {
		idle.newest.newer = inst
	} else {
		idle.oldest = inst
		idle.startTimer()
	}
	idle.newest = inst
	idle.bytes += inst.idleBytes
	inst.pool.instances = append(inst.pool.instances, inst)
}

// remove removes an instance, which has index i in its pool. The caller holds the
// lock.
func (idle *idleInstances) remove(inst *instance, i int) {
	inst.pool.instances = slices.Delete(inst.pool.instances, i, i+1)
	if inst.older != nil {
		inst.older.newer = inst.newer
	} else {
		idle.oldest = inst.newer
	}
	if inst.newer != nil {
		inst.newer.older = inst.older
	} else {
		idle.newest = inst.older
	}
	inst.older, inst.newer = nil, nil
	idle.bytes -= inst.idleBytes
	if idle.oldest == nil {
		idle.timer.Stop()
	}
}

// evictOne removes an instance that the caller closes after it has released the
// lock.
func (idle *idleInstances) evictOne(inst *instance) {
	idle.remove(inst, slices.Index(inst.pool.instances, inst))
	inst.pool.closing++
	idle.closing++
}

// evict evicts the oldest instances while more returns true for the oldest. The
// caller holds the lock, and closes the result after it has released the lock.
func (idle *idleInstances) evict(more func(oldest *instance) bool) (evicted []*instance) {
	for idle.oldest != nil && more(idle.oldest) {
		evicted = append(evicted, idle.oldest)
		idle.evictOne(idle.oldest)
	}
	return evicted
}

// close closes evicted instances.
func (idle *idleInstances) close(evicted []*instance) {
	for _, inst := range evicted {
		inst.close()
		idle.mu.Lock()
		inst.pool.closing--
		idle.closing--
		idle.mu.Unlock()
		idle.changed.Broadcast()
	}
}

// startTimer starts the timer for the oldest instance. The caller holds the lock.
func (idle *idleInstances) startTimer() {
	left := idleTimeout - time.Since(idle.oldest.idleSince)
	if idle.timer == nil {
		idle.timer = time.AfterFunc(left, idle.expire)
		return
	}
	idle.timer.Reset(left)
}

// expire closes the instances that have been idle for idleTimeout.
func (idle *idleInstances) expire() {
	idle.mu.Lock()
	evicted := idle.evict(func(oldest *instance) bool { return time.Since(oldest.idleSince) >= idleTimeout })
	if idle.oldest != nil {
		idle.startTimer()
	}
	idle.mu.Unlock()
	idle.close(evicted)
}

// reclaim closes the oldest instances until they have freed n bytes. If there is none,
// it waits for the end of one that another goroutine is closing. It reports false if
// there is none of either.
func (idle *idleInstances) reclaim(n int64) (freed bool) {
	idle.mu.Lock()
	evicted := idle.evict(func(oldest *instance) bool {
		enough := n <= 0
		n -= oldest.idleBytes
		return !enough
	})
	freed = len(evicted) > 0 || idle.closing > 0
	if len(evicted) == 0 && idle.closing > 0 {
		idle.changed.Wait()
	}
	idle.mu.Unlock()
	idle.close(evicted)
	return freed
}
