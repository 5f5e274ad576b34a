package wasm

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestReserveWaits: calls that need memory at the same time all get it if closing
// idle instances frees enough, however little one of them frees.
func TestReserveWaits(t *testing.T) {
	const calls, each, piece = 16, 1000, 10
	a := newArena(calls * each)
	a.resident.Store(calls * each) // all of it idle
	var idle atomic.Int64
	idle.Store(calls * each)
	a.reclaim = func(excess int64) bool {
		if excess > each {
			t.Errorf("reclaim of %d bytes for a call that needs %d", excess, each)
		}
		time.Sleep(10 * time.Microsecond) // closing takes time, in which the others arrive
		if idle.Add(-piece) < 0 {
			idle.Add(piece)
			return false
		}
		a.resident.Add(-piece)
		return true
	}
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if !a.reserve(each) {
				t.Error("a call got no memory although idle instances held enough")
			}
		})
	}
	wg.Wait()
	if a.reserve(1) || a.resident.Load() != calls*each {
		t.Errorf("%d bytes are reserved, want the limit of %d", a.resident.Load(), calls*each)
	}
}

// TestReserveBesideGreedyCall: a call that needs more memory than there is does not
// fail one that needs little.
func TestReserveBesideGreedyCall(t *testing.T) {
	a := newArena(1000)
	a.reclaim = func(int64) bool { time.Sleep(time.Millisecond); return false }
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a.reserve(1001) {
					t.Error("a call got more memory than there is")
				}
			}
		})
	}
	failed := 0
	for range 50 {
		time.Sleep(100 * time.Microsecond)
		if !a.reserve(500) {
			failed++
			continue
		}
		a.resident.Add(-500)
	}
	close(stop)
	wg.Wait()
	if failed > 0 || a.resident.Load() != 0 {
		t.Errorf("%d of 50 small calls got no memory, %d bytes are still reserved", failed, a.resident.Load())
	}
}

// TestReserveHammer: calls, idle instances and eviction together never exceed the
// limit, and no call fails while idle instances hold enough memory for all.
func TestReserveHammer(t *testing.T) {
	const calls, most = 8, 100
	a := newArena(calls * most)
	idle := newIdleInstances(1 << 30)
	a.reclaim = idle.reclaim
	pools := []*pool{newPool(idle), newPool(idle)}
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			for range 1_000 {
				n := 1 + rng.IntN(most)
				if !a.reserve(int64(n)) {
					t.Error("a call got no memory beside idle instances")
					return
				}
				if now := a.resident.Load(); now > (calls+1)*most {
					t.Errorf("%d bytes are reserved, the limit is %d and one call waits", now, calls*most)
				}
				inst := idleInstance(a, n)
				inst.memories.list[1].region = []byte{} // so that closing it frees n bytes
				pools[rng.IntN(len(pools))].put(inst)
			}
		})
	}
	wg.Wait()
	for _, p := range pools {
		p.close()
	}
	if n := a.resident.Load(); n != 0 {
		t.Errorf("%d bytes are reserved after close", n)
	}
}

func TestArena(t *testing.T) {
	a := newArena(1 << 20)
	defer a.close()
	for _, size := range []uint64{64 << 10, 600 << 10} { // cleared by hand, and by the kernel
		ms := &memories{arena: a, limit: 700 << 10}
		ms.list = append(ms.list, nil) // the kernel's place
		m := ms.Allocate(0, 1<<32)
		b := m.Reallocate(size)
		if uint64(len(b)) != size || a.resident.Load() != int64(size) {
			t.Fatalf("%d bytes, %d resident, want %d", len(b), a.resident.Load(), size)
		}
		for i, c := range b {
			if c != 0 {
				t.Fatalf("byte %d is %d in a new memory", i, c)
			}
			b[i] = 0xaa
		}
		if m.Reallocate(700<<10) == nil || m.growErr != nil {
			t.Error("a memory did not grow to its limit")
		}
		if m.Reallocate(701<<10) != nil || m.growErr == nil {
			t.Error("a memory grew beyond its limit")
		}
		m.Free()
		m.Free()
		if a.resident.Load() != 0 {
			t.Errorf("%d bytes are resident after Free", a.resident.Load())
		}
	}
	if len(a.free[700<<10]) != 1 {
		t.Errorf("%d regions are kept, want the one that was used twice", len(a.free[700<<10]))
	}
}
