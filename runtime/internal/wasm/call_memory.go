package wasm

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// blocks is the call memory: the texts that the host and one guest hand each
// other, named by address. Guests know it as the kernel of their PDK; here it is
// Go memory, because a call into a second guest for every byte moved made up
// most of a step.
//
// A block is a slice of its own, so a guest that writes beside it traps and
// harms nothing. Addresses follow from the order of allocations alone: equal
// calls see equal addresses, which a replay needs. Like its instance it serves
// one call at a time.
type blocks struct {
	arena *arena
	limit int // of used

	list []block // by address; the freed ones in the middle are holes
	next uint64  // address of the next block
	dead int     // holes in list
	last int     // index that was hit last: texts are read from end to end
	used int     // bytes of live blocks, with what keeping them costs
	slab []byte  // where small blocks are, zero behind fill
	fill int

	input, inputSize   uint64
	output, outputSize uint64
	fault              uint64 // handle of the guest's error text
}

type block struct {
	at   uint64
	size int    // as asked for
	data []byte // up to a multiple of 8, as guests read in words; nil when freed
	slab int    // where it begins in the slab, -1 for a slice of its own
}

const (
	firstAddress = 64       // so that 0 and what is near it name nothing
	blockGap     = 8        // between blocks, so that running over one is noticed
	blockCost    = 64       // bytes that keeping a block takes
	slabSize     = 32 << 10 // kept with the instance
	maxHoles     = 64       // before list is packed
)

// reset frees everything, and zeroes what is used again: what one step left
// must not be seen by the next.
func (b *blocks) reset() {
	clear(b.list)
	clear(b.slab[:b.fill])
	if cap(b.list) > 16*maxHoles {
		b.list = nil
	}
	b.arena.resident.Add(-int64(b.used))
	*b = blocks{arena: b.arena, limit: b.limit, list: b.list[:0], next: firstAddress, slab: b.slab}
}

// begin makes the call memory of the next call with its input.
func (b *blocks) begin(input []byte, limit int) error {
	b.reset()
	b.limit = limit
	handle, err := b.write(input)
	b.input, b.inputSize = handle, uint64(len(input))
	return err
}

// alloc makes a block of n zero bytes and returns its handle, 0 for none.
func (b *blocks) alloc(n uint64) (handle uint64, err error) {
	if n == 0 {
		return 0, nil
	}
	if n > uint64(b.limit) || b.used+int(n)+blockCost > b.limit {
		return 0, abi.New(abi.Memory, fmt.Sprintf("the plugin's memory limit is reached: its texts would take more than %d bytes", b.limit))
	}
	padded := (int(n) + 7) &^ 7
	charge := int64(padded + blockCost)
	if b.arena.resident.Add(charge) > b.arena.maxResident {
		b.arena.resident.Add(-charge)
		return 0, abi.New(abi.Unavailable, fmt.Sprintf("all plugins together hold the host's limit of %d bytes", b.arena.maxResident))
	}
	b.used += int(charge)
	blk := block{at: b.next, size: int(n), slab: -1}
	if b.slab == nil {
		b.slab = make([]byte, slabSize)
	}
	if b.fill+padded <= len(b.slab) {
		blk.slab = b.fill
		b.fill += padded
		blk.data = b.slab[blk.slab:b.fill:b.fill]
	} else {
		blk.data = make([]byte, padded)
	}
	b.next += uint64(padded) + blockGap
	b.list = append(b.list, blk)
	return blk.at, nil
}

// find returns the index of the live block that holds an address, or -1.
func (b *blocks) find(addr uint64) int {
	if b.last < len(b.list) && addr-b.list[b.last].at < uint64(len(b.list[b.last].data)) {
		return b.last
	}
	i, exact := slices.BinarySearchFunc(b.list, addr, func(blk block, addr uint64) int {
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
	if i < 0 || addr-b.list[i].at >= uint64(len(b.list[i].data)) {
		return -1
	}
	b.last = i
	return i
}

// bytes returns n bytes from an address on, nil if no block has them.
func (b *blocks) bytes(addr, n uint64) []byte {
	i := b.find(addr)
	if i < 0 {
		return nil
	}
	data := b.list[i].data[addr-b.list[i].at:]
	if n > uint64(len(data)) {
		return nil
	}
	return data[:n]
}

// length returns the size of a block, 0 for a handle that names none.
func (b *blocks) length(handle uint64) uint64 {
	if i := b.find(handle); i >= 0 && b.list[i].at == handle {
		return uint64(b.list[i].size)
	}
	return 0
}

// free ends a block; a handle that names none is ignored. Blocks freed at the
// end of the list give their addresses back, so that a guest that frees what it
// was given may call the host as often as it likes.
func (b *blocks) free(handle uint64) {
	i := b.find(handle)
	if i < 0 || b.list[i].at != handle {
		return
	}
	blk := &b.list[i]
	charge := len(blk.data) + blockCost
	b.used -= charge
	b.arena.resident.Add(-int64(charge))
	clear(blk.data)
	blk.data = nil
	b.dead++
	for n := len(b.list); n > 0 && b.list[n-1].data == nil; n-- {
		end := b.list[n-1]
		b.next, b.list, b.dead = end.at, b.list[:n-1], b.dead-1
		if end.slab >= 0 {
			b.fill = end.slab
		}
	}
	if b.dead > maxHoles && b.dead > len(b.list)/2 {
		b.list = slices.DeleteFunc(b.list, func(blk block) bool { return blk.data == nil })
		b.dead = 0
	}
}

// write stores a text and returns its handle.
func (b *blocks) write(text []byte) (handle uint64, err error) {
	if handle, err = b.alloc(uint64(len(text))); err == nil && handle != 0 {
		copy(b.list[len(b.list)-1].data, text)
	}
	return handle, err
}

// read copies a block; ok is false for a handle that names none.
func (b *blocks) read(handle uint64) (text []byte, ok bool) {
	n := b.length(handle)
	if n == 0 {
		return nil, false
	}
	return slices.Clone(b.bytes(handle, n)), true
}

// result copies the output; one that is not there is an empty one.
func (b *blocks) result() []byte { return slices.Clone(b.bytes(b.output, b.outputSize)) }
