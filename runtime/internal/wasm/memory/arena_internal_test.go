package memory

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/pool"
)

// TestReserveWaits: calls that need memory at the same time all get it if closing
// idle instances frees enough, however little one of them frees.
func TestReserveWaits(t *testing.T) {
	const calls, each, piece = 16, 1000, 10
	a := NewArena(calls*each, nil)
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
	a := NewArena(1000, nil)
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

// idleInstance is an instance that has n bytes of the arena.
type idleInstance struct {
	arena *Arena
	n     int64
}

func (idleInstance) SetLimit(int) bool { return true }
func (i idleInstance) Close()          { i.arena.resident.Add(-i.n) }

// TestReserveHammer: calls, idle instances and eviction together never exceed the
// limit, and no call fails while idle instances hold enough memory for all.
func TestReserveHammer(t *testing.T) {
	const calls, most = 8, 100
	idle := pool.NewIdle[idleInstance](1 << 30)
	a := NewArena(calls*most, idle.Reclaim)
	pools := []*pool.Pool[idleInstance]{pool.New(idle), pool.New(idle)}
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
				pools[rng.IntN(len(pools))].Put(idleInstance{a, int64(n)}, int64(n))
			}
		})
	}
	wg.Wait()
	for _, p := range pools {
		p.Close()
	}
	if n := a.resident.Load(); n != 0 {
		t.Errorf("%d bytes are reserved after close", n)
	}
}

func TestArena(t *testing.T) {
	a := NewArena(1<<20, nil)
	defer a.Close()
	for _, size := range []uint64{64 << 10, 600 << 10} { // cleared by hand, and by the kernel
		ms := &Memories{arena: a, limit: 700 << 10}
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

// TestWarmRegions: freed regions are zero and keep pages up to a limit, and lose them after
// a minute.
func TestWarmRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = maxWarm / 4
		a := NewArena(1<<30, nil)
		defer a.Close()
		check := func(what string, warm, pages int) {
			t.Helper()
			a.mu.Lock()
			defer a.mu.Unlock()
			n := 0
			for _, f := range a.free[size] {
				n += f.pages
			}
			if a.warm != warm || n != pages {
				t.Errorf("%s: %d bytes are counted and %d kept, want %d and %d", what, a.warm, n, warm, pages)
			}
		}
		use := func(n int) {
			t.Helper()
			var list [][]byte
			for range n {
				region, err := a.allocate(size)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.IndexFunc(region, func(r rune) bool { return r != 0 }) >= 0 {
					t.Error("a region is not zero")
				}
				for i := 0; i < size; i += 512 {
					region[i] = 1
				}
				list = append(list, region)
			}
			for _, region := range list {
				a.release(region, size)
			}
		}
		use(6)
		check("six freed", maxWarm, maxWarm)
		if region, err := a.allocate(size); err != nil || region == nil {
			t.Error(err)
		}
		check("one used", maxWarm-size, maxWarm-size)
		time.Sleep(warmFor)
		synctest.Wait()
		check("after a minute", 0, 0)
		use(6)
		check("six freed again", maxWarm, maxWarm)
		time.Sleep(2 * warmFor)
		synctest.Wait()
		check("after another minute", 0, 0)
	})
}
