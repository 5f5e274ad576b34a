package wasm

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// arena hands out linear memory and counts it. A region is address space for
// the largest size an instance may reach, so growing never moves it, and freed
// regions are kept, cleared, for the next instance. Fresh instances cost a
// third to a sixth of what the engine's own slices cost, and next to no Go heap.
//
// It is safe for concurrent use; a region belongs to one instance.
type arena struct {
	maxResident int64
	resident    atomic.Int64 // bytes that instances hold, the sum of their sizes
	relieve     func()       // frees what nobody waits for; it holds no lock of the arena

	mu     sync.Mutex
	free   map[int][][]byte // cleared regions by size
	closed bool
}

// maxFree is how many cleared regions of one size are kept. They hold address
// space, no memory.
const maxFree = 64

func newArena(maxResident int64) *arena {
	return &arena{maxResident: maxResident, relieve: func() {}, free: map[int][][]byte{}}
}

func (a *arena) take(size int) ([]byte, error) {
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

// give takes a region back of which the first touched bytes may be dirty.
func (a *arena) give(region []byte, touched int) {
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

// roomy reports whether there is memory for what nobody waits for.
func (a *arena) roomy() bool { return a.resident.Load() < a.maxResident/2 }

// close unmaps the kept regions.
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

// memories are the linear memories of one instance: that of the engine's own
// call kernel, which it asks for first and which nothing is put into, and the
// guest's.
type memories struct {
	arena *arena
	limit int // of the guest's, in bytes
	list  []*memory
}

// Allocate reserves the next memory. It cannot fail by its interface: a memory
// without address space is as large as its minimum and marked refused.
func (ms *memories) Allocate(least, most uint64) *memory {
	limit := ms.limit
	if len(ms.list) == 0 {
		limit = int(least)
	}
	m := &memory{arena: ms.arena, limit: int(min(most, uint64(limit)))}
	if m.region, m.refused = ms.arena.take(max(limit, int(least))); m.refused != nil {
		m.region = make([]byte, least)
	}
	ms.list = append(ms.list, m)
	return m
}

// size returns the guest's bytes.
func (ms *memories) size() int64 {
	if len(ms.list) < 2 {
		return 0
	}
	return int64(ms.list[1].size)
}

// setLimit changes the guest's limit for the next call; it reports false if
// the address space does not allow it or the guest is larger already.
func (ms *memories) setLimit(limit int) bool {
	if len(ms.list) < 2 || limit > ms.limit || ms.list[1].size > limit {
		return false
	}
	ms.list[1].limit = min(limit, len(ms.list[1].region))
	return true
}

// refused returns why a memory could not grow, nil if none was refused.
func (ms *memories) refused() error {
	for _, m := range ms.list {
		if m.refused != nil {
			return m.refused
		}
	}
	return nil
}

// memory is one linear memory. The engine calls it from the goroutine of the
// call that uses the instance.
type memory struct {
	arena   *arena
	region  []byte
	size    int
	touched int // the largest size so far
	limit   int // at most len(region)
	sized   bool
	refused error
}

// Reallocate sets the size and returns the memory, or nil if that is too much,
// which the guest sees as a memory.grow of -1. refused then says why, since
// most guests answer with a bare trap. The first call asks for the minimum and
// must not fail, so it is granted, and the instance thrown away if refused is set.
func (m *memory) Reallocate(size uint64) []byte {
	first := !m.sized
	m.sized = true
	if size > uint64(m.limit) {
		m.refused = abi.New(abi.Memory, fmt.Sprintf("the plugin's memory limit of %d bytes is reached", m.limit))
		if !first || size > uint64(len(m.region)) {
			return nil
		}
	}
	grow := int64(size) - int64(m.size)
	if m.arena.resident.Add(grow) > m.arena.maxResident && grow > 0 {
		m.arena.relieve()
	}
	if m.arena.resident.Load() > m.arena.maxResident && grow > 0 {
		m.refused = abi.New(abi.Unavailable, fmt.Sprintf("all plugins together hold the host's limit of %d bytes", m.arena.maxResident))
		if !first {
			m.arena.resident.Add(-grow)
			return nil
		}
	}
	m.size = int(size)
	m.touched = max(m.touched, m.size)
	return m.region[:size:size]
}

// Free gives the memory back. Further calls do nothing.
func (m *memory) Free() {
	if m.region == nil {
		return
	}
	m.arena.resident.Add(-int64(m.size))
	m.arena.give(m.region, m.touched)
	m.region, m.size = nil, 0
}
