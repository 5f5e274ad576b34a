package pool

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is an instance with n bytes of linear memory.
type fake struct {
	n      int64
	closed atomic.Bool // a timer closes too
}

func newFake(n int) *fake { return &fake{n: int64(n)} }

func (f *fake) SetLimit(limit int) bool { return limit <= 1<<30 && int64(limit) >= f.n }
func (f *fake) Close()                  { f.closed.Store(true) }

// wantClosed fails unless exactly the instances of the list are closed.
func wantClosed(t *testing.T, all []*fake, closed ...int) {
	t.Helper()
	want := make([]bool, len(all))
	for _, i := range closed {
		want[i] = true
	}
	for i, inst := range all {
		if inst.closed.Load() != want[i] {
			t.Errorf("instance %d is closed: %t, want %t", i, inst.closed.Load(), want[i])
		}
	}
}

// TestIdleBytes: the limit holds for all pools together, the oldest instance is
// closed first, and one beyond the limit by itself is not kept.
func TestIdleBytes(t *testing.T) {
	idle := NewIdle[*fake](10 << 20)
	one, other := New(idle), New(idle)
	var all []*fake
	put := func(p *Pool[*fake], n int) {
		all = append(all, newFake(n))
		p.Put(all[len(all)-1], int64(n))
	}
	put(one, 4<<20)
	put(other, 4<<20)
	put(one, 2<<20)
	wantClosed(t, all)
	put(other, 1<<20) // evicts the oldest
	wantClosed(t, all, 0)
	if idle.bytes != 7<<20 {
		t.Errorf("%d bytes are idle, want 7 MiB", idle.bytes)
	}
	put(one, 10<<20+1)
	wantClosed(t, all, 0, 4)
	put(one, 9<<20)
	wantClosed(t, all, 0, 1, 2, 4)
	if _, ok := one.Take(1<<30 + 1); ok {
		t.Error("an instance was taken for more than its address space")
	}
	if inst, _ := one.Take(9 << 20); inst != all[5] {
		t.Error("the last used instance was not taken")
	}
	other.Close()
	one.Put(all[5], all[5].n)
	one.Close()
	wantClosed(t, all, 0, 1, 2, 3, 4, 5)
	if idle.bytes != 0 || idle.oldest != nil || idle.newest != nil || idle.timer.Stop() {
		t.Errorf("%d bytes are idle after close, want none and no timer", idle.bytes)
	}
	late := newFake(1)
	one.Put(late, 1)
	if !late.closed.Load() {
		t.Error("an instance was kept after close")
	}
}

// TestIdleTimeout: each instance is closed a minute after its last use, whatever the
// others do, and the timer runs only while an instance is idle.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := NewIdle[*fake](1 << 30)
		p := New(idle)
		all := []*fake{newFake(1), newFake(1), newFake(1)}
		after := func(d time.Duration, closed ...int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			wantClosed(t, all, closed...)
		}
		p.Put(all[0], all[0].n)
		after(20 * time.Second)
		p.Put(all[1], all[1].n)
		after(20 * time.Second)
		for n := range 3 {
			if _, taken := p.Take(1); taken != (n < 2) {
				t.Errorf("instance %d of 2 can be taken: %t", n+1, taken)
			}
		}
		if idle.timer.Stop() {
			t.Error("the timer runs while no instance is idle")
		}
		after(2 * time.Minute)
		p.Put(all[0], all[0].n)
		after(20 * time.Second)
		p.Put(all[1], all[1].n)
		p.Put(all[2], all[2].n)
		after(40*time.Second - time.Millisecond) // the first has been idle for a millisecond less than a minute
		after(time.Millisecond, 0)
		after(20*time.Second-time.Millisecond, 0)
		after(time.Millisecond, 0, 1, 2)
		if idle.timer.Stop() {
			t.Error("the timer runs after the last instance was closed")
		}
		p.Close()
	})
}

// TestIdleReclaim: as many of the oldest instances are closed as the caller needs
// memory.
func TestIdleReclaim(t *testing.T) {
	idle := NewIdle[*fake](1 << 30)
	p := New(idle)
	var all []*fake
	for range 5 {
		all = append(all, newFake(100))
		p.Put(all[len(all)-1], 100)
	}
	idle.Reclaim(0)
	wantClosed(t, all)
	idle.Reclaim(150)
	wantClosed(t, all, 0, 1)
	idle.Reclaim(1 << 20)
	wantClosed(t, all, 0, 1, 2, 3, 4)
	p.Close()
}

// TestPoolHammer: concurrent use, eviction, reclaim and close leave the counts
// consistent and every instance closed once its pool is.
func TestPoolHammer(t *testing.T) {
	idle := NewIdle[*fake](1000)
	pools := []*Pool[*fake]{New(idle), New(idle), New(idle)}
	var mu sync.Mutex
	var all []*fake
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2_000 {
				p := pools[rng.IntN(len(pools))]
				inst, ok := p.Take(1000)
				if !ok {
					inst = newFake(1 + rng.IntN(300))
					mu.Lock()
					all = append(all, inst)
					mu.Unlock()
				}
				p.Put(inst, inst.n)
				if rng.IntN(50) == 0 {
					idle.Reclaim(int64(rng.IntN(500)))
				}
			}
		})
	}
	wg.Wait()
	for _, p := range pools {
		wg.Go(p.Close)
	}
	wg.Wait()
	if idle.bytes != 0 || idle.closing != 0 || idle.oldest != nil || idle.newest != nil || idle.timer.Stop() {
		t.Errorf("%d bytes are idle and %d instances being closed after close, want none and no timer", idle.bytes, idle.closing)
	}
	for i, inst := range all {
		if !inst.closed.Load() {
			t.Fatalf("instance %d of %d is not closed", i, len(all))
		}
	}
}
