package wasm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func newBlocks(t *testing.T, limit int) *blocks {
	t.Helper()
	b := &blocks{arena: newArena(1 << 30)}
	if err := b.begin([]byte("input"), limit); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBlocksAgainstMap makes random calls on the call memory and on a plain map,
// and compares what a guest could see after each.
func TestBlocksAgainstMap(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := newBlocks(t, 1<<30)
		want := map[uint64][]byte{}
		var order []uint64
		for range 2_000 {
			if len(order) > 0 && rng.IntN(2) == 0 {
				i := rng.IntN(len(order))
				if rng.IntN(2) == 0 {
					i = len(order) - 1 // as a guest mostly does
				}
				b.free(order[i])
				delete(want, order[i])
				order = append(order[:i], order[i+1:]...)
				continue
			}
			text := make([]byte, 1+rng.IntN(1<<rng.IntN(14)))
			for i := range text {
				text[i] = byte(rng.Uint32())
			}
			handle, err := b.alloc(uint64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			if want[handle] != nil {
				t.Fatalf("handle %d is given twice", handle)
			}
			if fresh := b.bytes(handle, uint64(len(text))); !bytes.Equal(fresh, make([]byte, len(text))) {
				t.Fatalf("a new block of %d bytes holds what an old one did", len(text))
			}
			copy(b.bytes(handle, uint64(len(text))), text)
			want[handle] = text
			order = append(order, handle)
		}
		for handle, text := range want {
			got, ok := b.read(handle)
			if !ok || !bytes.Equal(got, text) {
				t.Fatalf("block %d of %d bytes is not what was written", handle, len(text))
			}
			if b.length(handle+1) != 0 || b.bytes(handle, uint64(len(text)+8)) != nil {
				t.Fatalf("block %d reaches beyond its end", handle)
			}
			b.free(handle)
		}
		b.reset()
		if b.used != 0 || b.arena.resident.Load() != 0 {
			t.Errorf("%d bytes are counted after everything was freed, %d by the arena", b.used, b.arena.resident.Load())
		}
		if left := bytes.Trim(b.slab, "\x00"); len(left) != 0 {
			t.Errorf("%d bytes of freed blocks are left for the next step", len(left))
		}
	}
}

// A guest that frees what it was given may call the host for ever: neither
// addresses nor memory grow.
func TestBlocksAreReused(t *testing.T) {
	b := newBlocks(t, 1<<20)
	var first uint64
	for i := range 10_000 {
		in, err := b.alloc(200 << 10)
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.write([]byte("answer"))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = in
		}
		if in != first || len(b.list) != 3 {
			t.Fatalf("call %d: handle %d and %d blocks, want %d and 3", i, in, len(b.list), first)
		}
		b.free(in)
		b.free(out)
	}
}

func TestBlocksLimits(t *testing.T) {
	b := newBlocks(t, 1<<20)
	for _, n := range []uint64{1 << 20, 1<<64 - 1, 1 << 40} {
		if _, err := b.alloc(n); abi.CodeOf(err) != abi.Memory {
			t.Errorf("alloc %d: %v, want code memory", n, err)
		}
	}
	if handle, err := b.alloc(0); handle != 0 || err != nil {
		t.Errorf("alloc 0: %d, %v, want the handle of nothing", handle, err)
	}
	b.arena.maxResident = 1000
	if _, err := b.alloc(2000); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("beyond the host's limit: %v, want code unavailable", err)
	}
	for n := 0; ; n++ { // small blocks cost more than their bytes
		if _, err := b.alloc(1); err != nil {
			break
		}
		if n > 1<<20/blockCost {
			t.Fatal("small blocks are not counted with what keeping them takes")
		}
	}
	for _, addr := range []uint64{0, 8, firstAddress - 1, 1<<64 - 1} {
		if b.bytes(addr, 1) != nil {
			t.Errorf("address %d can be read", addr)
		}
	}
}
