package runtime

import (
	"container/list"
	"sync"
)

// residents are the guests that wait for an answer and are kept in memory while
// they fit. The one that has waited longest is unloaded first; it runs again,
// by replay, when its answer is there.
//
// # Concurrency
//
// Safe for concurrent use.
type residents struct {
	mu       sync.Mutex
	maxCount int
	maxBytes int64
	bytes    int64
	order    *list.List // of *resident, oldest first
}

// A resident is one guest's stay. park is closed when it must unload.
type resident struct {
	park  chan struct{}
	bytes int64
	at    *list.Element
}

func newResidents(count int, bytes int64) *residents {
	return &residents{maxCount: max(count, 0), maxBytes: bytes, order: list.New()}
}

// enter begins a stay of a guest that holds about bytes of memory. It may end
// others, or this one at once.
func (r *residents) enter(bytes int64) *resident {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &resident{park: make(chan struct{}), bytes: bytes}
	s.at = r.order.PushBack(s)
	r.bytes += bytes
	for r.order.Len() > r.maxCount || r.bytes > r.maxBytes {
		r.evict(r.order.Front())
	}
	return s
}

func (r *residents) evict(e *list.Element) {
	s := e.Value.(*resident)
	r.order.Remove(e)
	s.at = nil
	r.bytes -= s.bytes
	close(s.park)
}

// leave ends a stay; it does nothing after an eviction.
func (r *residents) leave(s *resident) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.at == nil {
		return
	}
	r.order.Remove(s.at)
	s.at = nil
	r.bytes -= s.bytes
}

// count returns how many guests wait in memory.
func (r *residents) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len()
}
