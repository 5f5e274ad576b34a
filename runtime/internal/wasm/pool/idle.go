package pool

import (
	"slices"
	"sync"
	"time"
)

// IdleTimeout is the time after which an idle instance is closed.
const IdleTimeout = time.Minute

// Idle limits the idle instances of all pools of a host, by their linear
// memory and by IdleTimeout. The oldest are closed first.
//
// Its timer runs only while an instance is idle. Instances are closed without the
// lock, because closing one takes as long as a short call; closing counts them, for
// callers that need their memory or the end of their use.
type Idle[T Instance] struct {
	maxBytes int64

	mu             sync.Mutex
	changed        sync.Cond // closing has decreased
	bytes          int64     // of linear memory
	oldest, newest *entry[T]
	closing        int // instances that were evicted and are not closed yet
	timer          *time.Timer
}

// NewIdle returns an empty list with a limit of maxBytes of linear memory.
func NewIdle[T Instance](maxBytes int64) *Idle[T] {
	idle := &Idle[T]{maxBytes: maxBytes}
	idle.changed.L = &idle.mu
	return idle
}

// add appends an instance to the list and to its pool. The caller holds the lock.
func (idle *Idle[T]) add(e *entry[T]) {
	e.since = time.Now()
	e.older, e.newer = idle.newest, nil
	if idle.newest != nil {
		idle.newest.newer = e
	} else {
		idle.oldest = e
		idle.startTimer()
	}
	idle.newest = e
	idle.bytes += e.bytes
	e.pool.entries = append(e.pool.entries, e)
}

// remove removes an instance, which has index i in its pool. The caller holds the
// lock.
func (idle *Idle[T]) remove(e *entry[T], i int) {
	e.pool.entries = slices.Delete(e.pool.entries, i, i+1)
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		idle.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		idle.newest = e.older
	}
	e.older, e.newer = nil, nil
	idle.bytes -= e.bytes
	if idle.oldest == nil {
		idle.timer.Stop()
	}
}

// evictOne removes an instance that the caller closes after it has released the
// lock.
func (idle *Idle[T]) evictOne(e *entry[T]) {
	idle.remove(e, slices.Index(e.pool.entries, e))
	e.pool.closing++
	idle.closing++
}

// evict evicts the oldest instances while more returns true for the oldest. The
// caller holds the lock, and closes the result after it has released the lock.
func (idle *Idle[T]) evict(more func(oldest *entry[T]) bool) (evicted []*entry[T]) {
	for idle.oldest != nil && more(idle.oldest) {
		evicted = append(evicted, idle.oldest)
		idle.evictOne(idle.oldest)
	}
	return evicted
}

// close closes evicted instances.
func (idle *Idle[T]) close(evicted []*entry[T]) {
	for _, e := range evicted {
		e.instance.Close()
		idle.mu.Lock()
		e.pool.closing--
		idle.closing--
		idle.mu.Unlock()
		idle.changed.Broadcast()
	}
}

// startTimer starts the timer for the oldest instance. The caller holds the lock.
func (idle *Idle[T]) startTimer() {
	left := IdleTimeout - time.Since(idle.oldest.since)
	if idle.timer == nil {
		idle.timer = time.AfterFunc(left, idle.expire)
		return
	}
	idle.timer.Reset(left)
}

// expire closes the instances that have been idle for IdleTimeout.
func (idle *Idle[T]) expire() {
	idle.mu.Lock()
	evicted := idle.evict(func(oldest *entry[T]) bool { return time.Since(oldest.since) >= IdleTimeout })
	if idle.oldest != nil {
		idle.startTimer()
	}
	idle.mu.Unlock()
	idle.close(evicted)
}

// Reclaim closes the oldest instances until they have freed n bytes. If there is none,
// it waits for the end of one that another goroutine is closing. It reports false if
// there is none of either.
func (idle *Idle[T]) Reclaim(n int64) (freed bool) {
	idle.mu.Lock()
	evicted := idle.evict(func(oldest *entry[T]) bool {
		enough := n <= 0
		n -= oldest.bytes
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

// entry is one idle instance.
type entry[T Instance] struct {
	instance T
	pool     *Pool[T]
	bytes    int64 // of linear memory
	since    time.Time

	older, newer *entry[T]
}
