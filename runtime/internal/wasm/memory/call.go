package memory

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// CallMemory holds the byte strings that the host and one guest exchange: the
// input, the output, and the requests and replies of host calls. They are blocks,
// identified by address. Guests know the call memory as the kernel of their PDK.
// Here it is Go memory, because a call into a second guest for every byte took most
// of the time of a step.
//
// Each block is a slice of its own, so that a guest that writes outside of a block
// traps and damages nothing. Addresses depend on the order of allocations alone:
// equal calls see equal addresses, which a replay needs.
//
// # Concurrency
//
// Like its instance, it serves one call at a time.
type CallMemory struct {
	arena *Arena
	limit int // on used, in bytes

	list []block // by address; freed blocks in the middle are holes
	next uint64  // address of the next block
	dead int     // number of holes in list
	last int     // index of the last hit, because byte strings are read from end to end
	used int     // bytes of live blocks, with BlockCost for each
	slab []byte  // memory of small blocks, zero after fill
	fill int

	// What the guest has set, and the host reads.
	Input, InputSize   uint64
	Output, OutputSize uint64
	Fault              uint64 // handle of the guest's error text
}

// block is one allocation. Its handle is its address.
type block struct {
	at   uint64
	size int    // as requested
	data []byte // padded to a multiple of 8, because guests read in words; nil when freed
	slab int    // offset in the slab, -1 for a slice of its own
}

const (
	firstAddress = 64       // no block is at 0 or next to it
	blockGap     = 8        // bytes between blocks, to detect overruns
	BlockCost    = 64       // bytes that a block takes besides its data
	slabSize     = 32 << 10 // kept with the instance
	maxHoles     = 64       // more holes than this compact the list
)

// NewCallMemory returns an empty call memory, which counts its bytes in arena.
func NewCallMemory(arena *Arena) *CallMemory { return &CallMemory{arena: arena} }

// Used returns the bytes of live blocks, with [BlockCost] for each.
func (m *CallMemory) Used() int { return m.used }

// Reset frees all blocks, and zeroes the memory that is used again: one step must
// not see the data of another.
func (m *CallMemory) Reset() {
	clear(m.list)
	clear(m.slab[:m.fill])
	if cap(m.list) > 16*maxHoles {
		m.list = nil
	}
	m.arena.resident.Add(-int64(m.used))
	*m = CallMemory{arena: m.arena, limit: m.limit, list: m.list[:0], next: firstAddress, slab: m.slab}
}

// Begin resets the memory for the next call. limit is in bytes.
func (m *CallMemory) Begin(limit int) {
	m.Reset()
	m.limit = limit
}

// SetInput stores the input of the call.
func (m *CallMemory) SetInput(input []byte) error {
	handle, err := m.Write(input)
	m.Input, m.InputSize = handle, uint64(len(input))
	return err
}

// Alloc allocates a block of n zero bytes. The handle of an empty block is 0.
func (m *CallMemory) Alloc(n uint64) (handle uint64, err error) {
	if n == 0 {
		return 0, nil
	}
	if n > uint64(m.limit) || m.used+int(n)+BlockCost > m.limit {
		return 0, abi.New(abi.Memory, fmt.Sprintf("the plugin's memory limit is reached: its input, output and host calls would take more than %d bytes", m.limit))
	}
	padded := (int(n) + 7) &^ 7
	charge := int64(padded + BlockCost)
	if !m.arena.reserve(charge) {
		return 0, m.arena.errFull()
	}
	m.used += int(charge)
	blk := block{at: m.next, size: int(n), slab: -1}
	if m.slab == nil {
		m.slab = make([]byte, slabSize)
	}
	if m.fill+padded <= len(m.slab) {
		blk.slab = m.fill
		m.fill += padded
		blk.data = m.slab[blk.slab:m.fill:m.fill]
	} else {
		blk.data = make([]byte, padded)
	}
	m.next += uint64(padded) + blockGap
	m.list = append(m.list, blk)
	return blk.at, nil
}

// find returns the index of the live block that contains an address, or -1.
func (m *CallMemory) find(addr uint64) int {
	if m.last < len(m.list) && addr-m.list[m.last].at < uint64(len(m.list[m.last].data)) {
		return m.last
	}
	i, exact := slices.BinarySearchFunc(m.list, addr, func(blk block, addr uint64) int {
		switch {
		case blk.at < addr:
			return -1
		case blk.at > addr:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || addr-m.list[i].at >= uint64(len(m.list[i].data)) {
		return -1
	}
	m.last = i
	return i
}

// Bytes returns the n bytes at an address, nil unless one block contains them.
func (m *CallMemory) Bytes(addr, n uint64) []byte {
	i := m.find(addr)
	if i < 0 {
		return nil
	}
	data := m.list[i].data[addr-m.list[i].at:]
	if n > uint64(len(data)) {
		return nil
	}
	return data[:n]
}

// Length returns the size of a block, 0 for an invalid handle.
func (m *CallMemory) Length(handle uint64) uint64 {
	if i := m.find(handle); i >= 0 && m.list[i].at == handle {
		return uint64(m.list[i].size)
	}
	return 0
}

// Free frees a block. It ignores an invalid handle. The addresses of blocks at the
// end of the list are used again, so that a guest that frees its replies can make
// any number of host calls.
func (m *CallMemory) Free(handle uint64) {
	i := m.find(handle)
	if i < 0 || m.list[i].at != handle {
		return
	}
	blk := &m.list[i]
	charge := len(blk.data) + BlockCost
	m.used -= charge
	m.arena.resident.Add(-int64(charge))
	clear(blk.data)
	blk.data = nil
	m.dead++
	for n := len(m.list); n > 0 && m.list[n-1].data == nil; n-- {
		end := m.list[n-1]
		m.next, m.list, m.dead = end.at, m.list[:n-1], m.dead-1
		if end.slab >= 0 {
			m.fill = end.slab
		}
	}
	if m.dead > maxHoles && m.dead > len(m.list)/2 {
		m.list = slices.DeleteFunc(m.list, func(blk block) bool { return blk.data == nil })
		m.dead = 0
	}
}

// Write stores text in a new block and returns its handle.
func (m *CallMemory) Write(text []byte) (handle uint64, err error) {
	if handle, err = m.Alloc(uint64(len(text))); err == nil && handle != 0 {
		copy(m.list[len(m.list)-1].data, text)
	}
	return handle, err
}

// Read returns a copy of a block. ok is false for an invalid handle.
func (m *CallMemory) Read(handle uint64) (text []byte, ok bool) {
	n := m.Length(handle)
	if n == 0 {
		return nil, false
	}
	return slices.Clone(m.Bytes(handle, n)), true
}

// Result returns a copy of the output. It is empty if the guest set none, or set
// one that no block contains.
func (m *CallMemory) Result() []byte { return slices.Clone(m.Bytes(m.Output, m.OutputSize)) }
