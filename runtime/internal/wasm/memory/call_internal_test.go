package memory

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// newCallMemory returns a call memory that holds an input.
func newCallMemory(t *testing.T, limit int) *CallMemory {
	t.Helper()
	b := &CallMemory{arena: NewArena(1<<30, func(int64) bool { return false })}
	b.Begin(limit)
	if err := b.SetInput([]byte("input")); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCallMemoryAgainstMap makes random calls on the call memory and on a map, and
// compares what a guest can see after each.
func TestCallMemoryAgainstMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := newCallMemory(t, 1<<30)
		want := map[uint64][]byte{}
		var order []uint64
		for range 2_000 {
			if len(order) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(order))
				if rng.IntN(2) == 0 {
					i = len(order) - 1 // the usual order of a guest
				}
				b.Free(order[i])
				delete(want, order[i])
				order = append(order[:i], order[i+1:]...)
				continue
			}
			text := make([]byte, 1+rng.IntN(1<<rng.IntN(14)))
			for i := range text {
				text[i] = byte(rng.Uint32())
			}
			handle, err := b.Alloc(uint64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			if want[handle] != nil {
				t.Fatalf("handle %d was returned twice", handle)
			}
			if fresh := b.Bytes(handle, uint64(len(text))); !bytes.Equal(fresh, make([]byte, len(text))) {
				t.Fatalf("a new block of %d bytes is not zero", len(text))
			}
			copy(b.Bytes(handle, uint64(len(text))), text)
			want[handle] = text
			order = append(order, handle)
		}
		for handle, text := range want {
			got, ok := b.Read(handle)
			if !ok || !bytes.Equal(got, text) {
				t.Fatalf("block %d of %d bytes does not hold what was written", handle, len(text))
			}
			if b.Length(handle+1) != 0 || b.Bytes(handle, uint64(len(text)+8)) != nil {
				t.Fatalf("block %d reaches beyond its end", handle)
			}
			b.Free(handle)
		}
		b.Reset()
		if b.used != 0 || b.arena.resident.Load() != 0 {
			t.Errorf("%d bytes in use after all blocks were freed, %d by the arena", b.used, b.arena.resident.Load())
		}
		if left := bytes.Trim(b.slab, "\x00"); len(left) != 0 {
			t.Errorf("%d bytes of freed blocks are not zero", len(left))
		}
	}
}

// TestCallMemoryIsReused: a guest that frees its blocks can make any number of host
// calls without growth of addresses or memory.
func TestCallMemoryIsReused(t *testing.T) {
	b := newCallMemory(t, 1<<20)
	var first uint64
	for i := range 10_000 {
		in, err := b.Alloc(200 << 10)
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.Write([]byte("answer"))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = in
		}
		if in != first || len(b.list) != 3 {
			t.Fatalf("call %d: handle %d and %d blocks, want %d and 3", i, in, len(b.list), first)
		}
		b.Free(in)
		b.Free(out)
	}
}

// TestCallMemoryLimits: the limits of a call and of the host hold for blocks, whose
// cost is counted.
func TestCallMemoryLimits(t *testing.T) {
	b := newCallMemory(t, 1<<20)
	for _, n := range []uint64{1 << 20, 1<<64 - 1, 1 << 40} {
		if _, err := b.Alloc(n); abi.CodeOf(err) != abi.Memory {
			t.Errorf("alloc %d: %v, want code memory", n, err)
		}
	}
	if handle, err := b.Alloc(0); handle != 0 || err != nil {
		t.Errorf("alloc 0: %d, %v, want handle 0", handle, err)
	}
	b.arena.maxResident = 1000
	if _, err := b.Alloc(2000); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("beyond MaxResidentBytes: %v, want code unavailable", err)
	}
	for n := 0; ; n++ { // a small block costs more than its data
		if _, err := b.Alloc(1); err != nil {
			break
		}
		if n > 1<<20/BlockCost {
			t.Fatal("small blocks are not counted with blockCost")
		}
	}
	for _, addr := range []uint64{0, 8, firstAddress - 1, 1<<64 - 1} {
		if b.Bytes(addr, 1) != nil {
			t.Errorf("address %d can be read", addr)
		}
	}
}
