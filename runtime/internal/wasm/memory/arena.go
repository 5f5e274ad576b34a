package memory

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Arena allocates linear memory and counts it. A region is address space for the
// largest size of an instance, so that growing does not move it. Freed regions are
// cleared and kept for the next instance. Creating an instance takes a third to a
// sixth of the time that it takes with wazero's slices, and hardly any Go heap.
//
// # Concurrency
//
// It is safe for concurrent use. A region belongs to one instance.
type Arena struct {
	maxResident int64
	resident    atomic.Int64 // bytes of all linear memories and call memories
	reclaim     func(excess int64) (freed bool)
	reclaiming  sync.Mutex // one caller at a time frees memory

	mu     sync.Mutex
	free   map[int][][]byte // cleared regions by size
	closed bool
}

// maxFree is how many cleared regions of one size are kept. They take address space,
// but no memory.
const maxFree = 64

// NewArena returns an arena for at most maxResident bytes. reclaim closes idle
// instances with about excess bytes, and reports false if there was
// none. It must not reserve memory, and is called by one goroutine at a time.
func NewArena(maxResident int64, reclaim func(excess int64) (freed bool)) *Arena {
	return &Arena{maxResident: maxResident, reclaim: reclaim, free: map[int][][]byte{}}
}

// allocate returns a zero region.
func (a *Arena) allocate(size int) ([]byte, error) {
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
func (a *Arena) release(region []byte, touched int) {
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
func (a *Arena) reserve(n int64) bool {
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

// errFull is the error of a call that cannot reserve memory.
func (a *Arena) errFull() error {
	return abi.New(abi.Unavailable, fmt.Sprintf("the host's memory limit of %d bytes for all plugins is reached", a.maxResident))
}

// fits counts n more bytes if that does not exceed the limit of the host.
func (a *Arena) fits(n int64) bool {
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

// Resident returns the memory of all instances in bytes: their linear memories and
// call memories.
func (a *Arena) Resident() int64 { return a.resident.Load() }

// HasSpare reports whether there is memory for prewarmed instances.
func (a *Arena) HasSpare() bool { return a.resident.Load() < a.maxResident/2 }

// Close unmaps the free regions.
func (a *Arena) Close() {
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
