package wasm

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// arena allocates linear memory and counts it. A region is address space for the
// largest size of an instance, so that growing does not move it. Freed regions are
// cleared and kept for the next instance. Creating an instance takes a third to a
// sixth of the time that it takes with wazero's slices, and hardly any Go heap.
//
// # Concurrency
//
// It is safe for concurrent use. A region belongs to one instance.
type arena struct {
	maxResident int64
	resident    atomic.Int64 // bytes of all linear memories and call memories
	// reclaim closes idle instances that hold up to excess bytes, or more, and reports
	// false if there was none. It must not reserve memory.
	reclaim    func(excess int64) (freed bool)
	reclaiming sync.Mutex // held by the one caller that waits for memory to be freed

	mu     sync.Mutex
	free   map[int][][]byte // cleared regions by size
	closed bool
}

// maxFree is how many cleared regions of one size are kept. They take address space,
// but no memory.
const maxFree = 64

func newArena(maxResident int64) *arena {
	return &arena{maxResident: maxResident, reclaim: func(int64) bool { return false }, free: map[int][][]byte{}}
}

// allocate returns a zero region.
func (a *arena) allocate(size int) ([]byte, error) {
	a.mu.Lock()
	if list := a.free[size]; len(list) > 0 {
		region := list[len(list)-1]
		a.free[size] = list[:len(list)-1]
		a.mu.Unlock()
		return region, nil
	}
	a.mu.Unlock()
	region, err := mapRegion(size)
	if err != nil {
		return nil, abi.New(abi.Unavailable, fmt.Sprintf("reserve %d bytes for a plugin: %v", size, err))
	}
	return region, nil
}

// release frees a region, of which only the first touched bytes may be nonzero.
func (a *arena) release(region []byte, touched int) {
	if clearRegion(region, touched) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if list := a.free[len(region)]; len(list) < maxFree && !a.closed {
			a.free[len(region)] = append(list, region)
			return
		}
	}
	unmapRegion(region)
}

// reserve counts n more bytes. It closes idle instances if that exceeds the limit of
// the host, and reports false, without counting, if it still does.
//
// One caller at a time frees memory. Its bytes are counted meanwhile, so no other
// caller can reserve what it has freed, and the bytes of a caller that waits are not,
// so a call that is too large does not fail a smaller one.
func (a *arena) reserve(n int64) bool {
	if a.fits(n) {
		return true
	}
	a.reclaiming.Lock()
	defer a.reclaiming.Unlock()
	a.resident.Add(n)
	for {
		excess := a.resident.Load() - a.maxResident
		if excess <= 0 {
			return true
		}
		if !a.reclaim(excess) {
			break
		}
	}
	if a.resident.Load() <= a.maxResident { // a call has ended meanwhile
		return true
	}
	a.resident.Add(-n)
	return false
}

// fits counts n more bytes if that does not exceed the limit of the host.
func (a *arena) fits(n int64) bool {
	for {
		now := a.resident.Load()
		if now+n > a.maxResident {
			return false
		}
		if a.resident.CompareAndSwap(now, now+n) {
			return true
		}
	}
}

// hasSpare reports whether there is memory for prewarmed instances.
func (a *arena) hasSpare() bool { return a.resident.Load() < a.maxResident/2 }

// close unmaps the free regions.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, list := range a.free {
		for _, region := range list {
			unmapRegion(region)
		}
	}
	clear(a.free)
}

// memories are the linear memories of one instance: first that of the SDK's kernel,
// which stays unused, then the guest's.
type memories struct {
	arena *arena
	limit int // of the guest's memory, in bytes
	list  []*memory
}

// Allocate reserves the next memory. Its interface has no error: without address
// space the memory has its minimum size, and growErr is set.
func (ms *memories) Allocate(least, most uint64) *memory {
	limit := ms.limit
	if len(ms.list) == 0 {
		limit = int(least)
	}
	m := &memory{arena: ms.arena, limit: int(min(most, uint64(limit)))}
	if m.region, m.growErr = ms.arena.allocate(max(limit, int(least))); m.growErr != nil {
		m.region = make([]byte, least)
	}
	ms.list = append(ms.list, m)
	return m
}

// total returns the size of all memories in bytes.
func (ms *memories) total() (n int64) {
	for _, m := range ms.list {
		n += int64(m.size)
	}
	return n
}

// size returns the size of the guest's memory in bytes.
func (ms *memories) size() int64 {
	if len(ms.list) < 2 {
		return 0
	}
	return int64(ms.list[1].size)
}

// setLimit sets the memory limit of the next call. It reports false if the limit is
// beyond the address space or below the current size.
func (ms *memories) setLimit(limit int) bool {
	if len(ms.list) < 2 || limit > ms.limit || ms.list[1].size > limit {
		return false
	}
	ms.list[1].limit = min(limit, len(ms.list[1].region))
	return true
}

// growError returns why a memory could not grow, nil if each could.
func (ms *memories) growError() error {
	for _, m := range ms.list {
		if m.growErr != nil {
			return m.growErr
		}
	}
	return nil
}

// memory is one linear memory. wazero calls its methods from the goroutine of the
// call.
type memory struct {
	arena   *arena
	region  []byte
	size    int
	touched int // largest size so far
	limit   int // at most len(region)
	sized   bool
	growErr error // why it could not grow
}

// Reallocate sets the size and returns the memory, nil if the size exceeds a limit.
// The guest then sees -1 from memory.grow, and most guests trap; growErr has the
// reason. The first call has the minimum size and must not fail: it succeeds, and the
// instance is closed if growErr is set.
func (m *memory) Reallocate(size uint64) []byte {
	first := !m.sized
	m.sized = true
	if size > uint64(m.limit) {
		m.growErr = abi.New(abi.Memory, fmt.Sprintf("the plugin's memory limit of %d bytes is reached", m.limit))
		if !first || size > uint64(len(m.region)) {
			return nil
		}
	}
	switch grow := int64(size) - int64(m.size); {
	case grow <= 0:
		m.arena.resident.Add(grow)
	case !m.arena.reserve(grow):
		m.growErr = abi.New(abi.Unavailable, fmt.Sprintf("all plugins together hold the host's limit of %d bytes", m.arena.maxResident))
		if !first {
			return nil
		}
		m.arena.resident.Add(grow)
	}
	m.size = int(size)
	m.touched = max(m.touched, m.size)
	return m.region[:size:size]
}

// Free releases the memory. Further calls do nothing.
func (m *memory) Free() {
	if m.region == nil {
		return
	}
	m.arena.resident.Add(-int64(m.size))
	m.arena.release(m.region, m.touched)
	m.region, m.size = nil, 0
}
