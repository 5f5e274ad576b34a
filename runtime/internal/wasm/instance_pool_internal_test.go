package wasm

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// idleInstance returns an instance without a guest that has n bytes of linear memory.
func idleInstance(a *arena, n int) *instance {
	return &instance{
		memories:   &memories{arena: a, limit: 1 << 30, list: []*memory{{arena: a}, {arena: a, size: n}}},
		callMemory: callMemory{arena: a},
		born:       time.Now(),
		start:      int64(n),
	}
}

// wantClosed fails unless exactly the instances of the list are closed.
func wantClosed(t *testing.T, all []*instance, closed ...int) {
	t.Helper()
	want := make([]bool, len(all))
	for _, i := range closed {
		want[i] = true
	}
	for i, inst := range all {
		if inst.closing != want[i] {
			t.Errorf("instance %d is closed: %t, want %t", i, inst.closing, want[i])
		}
	}
}

// TestIdleBytes: the limit holds for all pools together, the oldest instance is
// closed first, and one beyond the limit by itself is not kept.
func TestIdleBytes(t *testing.T) {
	a := newArena(1 << 30)
	idle := newIdleInstances(10 << 20)
	one, other := newPool(idle), newPool(idle)
	var all []*instance
	put := func(p *pool, n int) {
		all = append(all, idleInstance(a, n))
		p.put(all[len(all)-1])
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
	if inst := one.take(1<<30 + 1); inst != nil {
		t.Error("an instance was taken for more than its address space")
	}
	if inst := one.take(9 << 20); inst != all[5] {
		t.Error("the last used instance was not taken")
	}
	other.close()
	one.put(all[5])
	one.close()
	wantClosed(t, all, 0, 1, 2, 3, 4, 5)
	if idle.bytes != 0 || idle.oldest != nil || idle.newest != nil || idle.timer.Stop() {
		t.Errorf("%d bytes are idle after close, want none and no timer", idle.bytes)
	}
	late := idleInstance(a, 1)
	one.put(late)
	if !late.closing {
		t.Error("an instance was kept after close")
	}
}

// TestIdleTimeout: each instance is closed a minute after its last use, whatever the
// others do, and the timer runs only while an instance is idle.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArena(1 << 30)
		idle := newIdleInstances(1 << 30)
		p := newPool(idle)
		all := []*instance{idleInstance(a, 1), idleInstance(a, 1), idleInstance(a, 1)}
		after := func(d time.Duration, closed ...int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			wantClosed(t, all, closed...)
		}
		p.put(all[0])
		after(20 * time.Second)
		p.put(all[1])
		after(20 * time.Second)
		for n := range 3 {
			if taken := p.take(1) != nil; taken != (n < 2) {
				t.Errorf("instance %d of 2 can be taken: %t", n+1, taken)
			}
		}
		if idle.timer.Stop() {
			t.Error("the timer runs while no instance is idle")
		}
		after(2 * time.Minute)
		p.put(all[0])
		after(20 * time.Second)
		p.put(all[1])
		p.put(all[2])
		after(40*time.Second - time.Millisecond) // the first has been idle for a millisecond less than a minute
		after(time.Millisecond, 0)
		after(20*time.Second-time.Millisecond, 0)
		after(time.Millisecond, 0, 1, 2)
		if idle.timer.Stop() {
			t.Error("the timer runs after the last instance was closed")
		}
		p.close()
	})
}

// TestIdleReclaim: as many of the oldest instances are closed as the caller needs
// memory.
func TestIdleReclaim(t *testing.T) {
	a := newArena(1 << 30)
	idle := newIdleInstances(1 << 30)
	p := newPool(idle)
	var all []*instance
	for range 5 {
		all = append(all, idleInstance(a, 100))
		p.put(all[len(all)-1])
	}
	idle.reclaim(0)
	wantClosed(t, all)
	idle.reclaim(150)
	wantClosed(t, all, 0, 1)
	idle.reclaim(1 << 20)
	wantClosed(t, all, 0, 1, 2, 3, 4)
	p.close()
}

// TestPoolHammer: concurrent use, eviction, reclaim and close leave the counts
// consistent and every instance closed once its pool is.
func TestPoolHammer(t *testing.T) {
	a := newArena(1 << 30)
	idle := newIdleInstances(1000)
	pools := []*pool{newPool(idle), newPool(idle), newPool(idle)}
	var mu sync.Mutex
	var all []*instance
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2_000 {
				p := pools[rng.IntN(len(pools))]
				inst := p.take(1000)
				if inst == nil {
					inst = idleInstance(a, 1+rng.IntN(300))
					mu.Lock()
					all = append(all, inst)
					mu.Unlock()
				}
				p.put(inst)
				if rng.IntN(50) == 0 {
					idle.reclaim(int64(rng.IntN(500)))
				}
			}
		})
	}
	wg.Wait()
	for _, p := range pools {
		wg.Go(p.close)
	}
	wg.Wait()
	if idle.bytes != 0 || idle.closing != 0 || idle.oldest != nil || idle.newest != nil || idle.timer.Stop() {
		t.Errorf("%d bytes are idle and %d instances being closed after close, want none and no timer", idle.bytes, idle.closing)
	}
	for i, inst := range all {
		if !inst.closing {
			t.Fatalf("instance %d of %d is not closed", i, len(all))
		}
	}
}
