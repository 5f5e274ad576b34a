package memory

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Arena allocates linear memory and counts it. A region is address space for the
// largest size of an instance, so that growing does not move it. Freed regions are
// cleared and kept for the next instance. Creating an instance takes a third to a
// sixth of the time that it takes with wazero's slices, and hardly any Go heap. A few
// regions keep their pages for a while, because faulting in those of a Go guest takes
// longer than all else at the creation of its instance.
//
// # Concurrency
//
// It is safe for concurrent use. A region belongs to one instance.
type Arena struct {
	maxResident int64
	resident    atomic.Int64 // bytes of all linear memories and call memories
	reclaim     func(excess int64) (freed bool)
	reclaiming  sync.Mutex // one caller at a time frees memory

	mu      sync.Mutex
	free    map[int][]freeRegion // by size, those with pages last
	warm    int                  // bytes of pages of free regions, and of those that are being cleared
	cooling bool                 // cool is going to be called
	closed  bool
}

// freeRegion is a cleared region.
type freeRegion struct {
	region []byte
	pages  int // bytes at its beginning that keep their pages
}

// maxFree is how many cleared regions of one size are kept. They take address space,
// but no memory, except that for maxWarm bytes they keep their pages for warmFor.
const (
	maxFree = 64
	maxWarm = 16 << 20
	warmFor = time.Minute
)

// NewArena returns an arena for at most maxResident bytes. reclaim closes idle
// instances with about excess bytes, and reports false if there was
// none. It must not reserve memory, and is called by one goroutine at a time.
func NewArena(maxResident int64, reclaim func(excess int64) (freed bool)) *Arena {
	return &Arena{maxResident: maxResident, reclaim: reclaim, free: map[int][]freeRegion{}}
}

// allocate returns a zero region.
func (a *Arena) allocate(size int) ([]byte, error) {
	a.mu.Lock()
	if list := a.free[size]; len(list) > 0 {
		last := list[len(list)-1]
		a.free[size] = list[:len(list)-1]
		a.warm -= last.pages
		a.mu.Unlock()
		return last.region, nil
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
	pages := a.keepPages(touched)
	clear(region[:pages])
	reusable := pages > 0 || clearRegion(region, touched)
	a.mu.Lock()
	if list := a.free[len(region)]; reusable && len(list) < maxFree && !a.closed {
		at := len(list)
		if pages == 0 {
			at = 0
		}
		a.free[len(region)] = slices.Insert(list, at, freeRegion{region, pages})
		a.mu.Unlock()
		return
	}
	a.warm -= pages
	a.mu.Unlock()
	unmapRegion(region)
}

// keepPages returns how many bytes of a region with n bytes of pages keep them: all or
// none.
func (a *Arena) keepPages(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.warm+n > maxWarm {
		return 0
	}
	a.warm += n
	if !a.cooling {
		a.cooling = true
		time.AfterFunc(warmFor, a.cool)
	}
	return n
}

// cool frees the pages of free regions. It is called once a minute while some have
// pages.
func (a *Arena) cool() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cooling = false
	for _, list := range a.free {
		for i := range list {
			if f := &list[i]; f.pages > 0 && clearRegion(f.region, f.pages) {
				a.warm -= f.pages
				f.pages = 0
			}
		}
	}
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
		for _, f := range list {
			unmapRegion(f.region)
		}
	}
	clear(a.free)
}
