package capacity

import (
	"container/list"
	"sync"
)

// Residents are the guests that wait for an answer and are kept in memory while
// they fit. The one that has waited longest is unloaded first; it runs again,
// by replay, when its answer is there.
//
// # Concurrency
//
// Safe for concurrent use.
type Residents struct {
	mu       sync.Mutex
	maxCount int
	maxBytes int64
	bytes    int64
	order    *list.List // of *Stay, oldest first
}

// A Stay is the time for which one guest is resident. Evicted is closed when it must
// be unloaded.
type Stay struct {
	Evicted chan struct{}
	bytes   int64
	at      *list.Element
}

// NewResidents keeps at most count guests with bytes of memory in all.
func NewResidents(count int, bytes int64) *Residents {
	return &Residents{maxCount: max(count, 0), maxBytes: bytes, order: list.New()}
}

// Enter begins a stay of a guest that holds about bytes of memory. It may end
// others, or this one at once.
func (r *Residents) Enter(bytes int64) *Stay {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Stay{Evicted: make(chan struct{}), bytes: bytes}
	s.at = r.order.PushBack(s)
	r.bytes += bytes
	for r.order.Len() > r.maxCount || r.bytes > r.maxBytes {
		r.evict(r.order.Front())
	}
	return s
}

func (r *Residents) evict(e *list.Element) {
	s := e.Value.(*Stay)
	r.order.Remove(e)
	s.at = nil
	r.bytes -= s.bytes
	close(s.Evicted)
}

// Leave ends a stay; it does nothing after an eviction.
func (r *Residents) Leave(s *Stay) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.at == nil {
		return
	}
	r.order.Remove(s.at)
	s.at = nil
	r.bytes -= s.bytes
}

// Count returns how many guests wait in memory.
func (r *Residents) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len()
}
