package memory

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Memories are the linear memories of one instance: first that of the SDK's kernel,
// which stays unused, then the guest's.
type Memories struct {
	arena *Arena
	limit int // of the guest's memory, in bytes
	list  []*Linear
}

// NewMemories returns the memories of an instance whose guest may have at most limit
// bytes.
func NewMemories(arena *Arena, limit int) *Memories { return &Memories{arena: arena, limit: limit} }

// Allocate reserves the next memory. Its interface has no error: without address
// space the memory has its minimum size, and growErr is set.
func (ms *Memories) Allocate(least, most uint64) *Linear {
	limit := ms.limit
	if len(ms.list) == 0 {
		limit = int(least)
	}
	m := &Linear{arena: ms.arena, limit: int(min(most, uint64(limit)))}
	if m.region, m.growErr = ms.arena.allocate(max(limit, int(least))); m.growErr != nil {
		m.region = make([]byte, least)
	}
	ms.list = append(ms.list, m)
	return m
}

// Total returns the size of all memories in bytes.
func (ms *Memories) Total() (n int64) {
	for _, m := range ms.list {
		n += int64(m.size)
	}
	return n
}

// Size returns the size of the guest's memory in bytes.
func (ms *Memories) Size() int64 {
	if len(ms.list) < 2 {
		return 0
	}
	return int64(ms.list[1].size)
}

// SetLimit sets the memory limit of the next call. It reports false if the limit is
// beyond the address space or below the current size.
func (ms *Memories) SetLimit(limit int) bool {
	if len(ms.list) < 2 || limit > ms.limit || ms.list[1].size > limit {
		return false
	}
	ms.list[1].limit = min(limit, len(ms.list[1].region))
	return true
}

// GrowError returns why a memory could not grow, nil if each could.
func (ms *Memories) GrowError() error {
	for _, m := range ms.list {
		if m.growErr != nil {
			return m.growErr
		}
	}
	return nil
}

// Free releases all memories. Further calls do nothing.
func (ms *Memories) Free() {
	for _, m := range ms.list {
		m.Free()
	}
}

// Linear is one linear memory. wazero calls its methods from the goroutine of the
// call.
type Linear struct {
	arena   *Arena
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
func (m *Linear) Reallocate(size uint64) []byte {
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
		m.growErr = m.arena.errFull()
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
func (m *Linear) Free() {
	if m.region == nil {
		return
	}
	m.arena.resident.Add(-int64(m.size))
	m.arena.release(m.region, m.touched)
	m.region, m.size = nil, 0
}
