package pool

import (
	"context"
	"errors"
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

var errEmpty = errors.New("no instance is idle")

// none is a create function of a caller that wants an idle instance.
func none() (*fake, error) { return nil, errEmpty }

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
		p.Add(all[len(all)-1], int64(n))
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
	if _, err := one.Take(t.Context(), 1<<30+1, none); err == nil {
		t.Error("an instance was taken for more than its address space")
	}
	if inst, _ := one.Take(t.Context(), 9<<20, none); inst != all[5] {
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
	one.Add(late, 1)
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
		p.Add(all[0], all[0].n)
		after(20 * time.Second)
		p.Add(all[1], all[1].n)
		after(20 * time.Second)
		for n := range 3 {
			if _, err := p.Take(t.Context(), 1, none); (err == nil) != (n < 2) {
				t.Errorf("instance %d of 2: %v", n+1, err)
			}
		}
		if idle.timer.Stop() {
			t.Error("the timer runs while no instance is idle")
		}
		after(2 * time.Minute)
		p.Put(all[0], all[0].n)
		after(20 * time.Second)
		p.Put(all[1], all[1].n)
		p.Add(all[2], all[2].n)
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
		p.Add(all[len(all)-1], 100)
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
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(1000))*time.Microsecond)
				inst, err := p.Take(ctx, 1000, func() (*fake, error) {
					inst := newFake(1 + rng.IntN(300))
					mu.Lock()
					all = append(all, inst)
					mu.Unlock()
					return inst, nil
				})
				cancel()
				switch {
				case err != nil:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				case rng.IntN(10) == 0:
					p.Drop(inst)
				default:
					p.Put(inst, inst.n)
				}
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
	for i, p := range pools {
		if p.used != 0 || len(p.waiters) != 0 || len(p.turns) != 0 {
			t.Errorf("pool %d: %d instances are used, %d callers wait, %d have a turn; want none", i, p.used, len(p.waiters), len(p.turns))
		}
	}
	for i, inst := range all {
		if !inst.closed.Load() {
			t.Fatalf("instance %d of %d is not closed", i, len(all))
		}
	}
}

// TestTakeWaits: a caller gets an instance that is returned soon, and creates one if none
// is. It waits less each time that none is returned, until one is.
func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cost = 4 * time.Millisecond
		p := New(NewIdle[*fake](1 << 30))
		defer p.Close()
		created := 0
		take := func() (inst *fake, waited time.Duration) {
			began := time.Now()
			inst, err := p.Take(t.Context(), 1, func() (*fake, error) {
				waited = time.Since(began)
				created++
				time.Sleep(cost)
				return newFake(1), nil
			})
			if err != nil {
				t.Error(err)
			}
			return inst, waited
		}
		for range 2 { // none was returned yet, so none is expected
			if _, waited := take(); waited != 0 {
				t.Errorf("the first callers waited %s", waited)
			}
		}
		first := newFake(1)
		p.Add(first, 1)
		if inst, _ := take(); inst != first || created != 2 {
			t.Errorf("%d instances were created, want 2 and the idle one taken", created)
		}
		go func() {
			time.Sleep(cost / 2)
			p.Put(first, 1)
		}()
		if inst, _ := take(); inst != first || created != 2 {
			t.Errorf("%d instances were created, want 2 and the returned one taken", created)
		}
		for want := cost; want > cost/100; want /= 2 {
			if _, waited := take(); waited != want {
				t.Errorf("waited %s for an instance that was not returned, want %s", waited, want)
			}
		}
		p.Put(first, 1)
		take()
		if _, waited := take(); waited != cost {
			t.Errorf("waited %s after a return, want %s", waited, cost)
		}
	})
}

// TestTakeFew: of many callers that wait few create an instance, those that came first
// get one first, and one whose context ends leaves the queue.
func TestTakeFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 100
		p := New(NewIdle[*fake](1 << 30))
		defer p.Close()
		proceed := make(chan struct{})
		var creating, served atomic.Int64
		create := func() (*fake, error) {
			creating.Add(1)
			<-proceed
			return newFake(1), nil
		}
		var wg sync.WaitGroup
		turns := cap(p.turns)
		for i := range callers {
			wg.Go(func() {
				inst, err := p.Take(t.Context(), 1, create)
				if err != nil {
					t.Error(err)
					return
				}
				if n := served.Add(1); n < int64(i-callers/4) { // counted by whichever goroutine comes first
					t.Errorf("caller %d was served as number %d", i, n)
				}
				p.Put(inst, 1)
			})
			synctest.Wait()
		}
		cause := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := make(chan error, 1)
		go func() {
			_, err := p.Take(ctx, 1, create)
			stopped <- err
		}()
		synctest.Wait()
		cancel(cause)
		if err := <-stopped; !errors.Is(err, cause) {
			t.Errorf("a stopped caller got %v", err)
		}
		close(proceed)
		wg.Wait()
		// Others may have a turn before the first instance is returned.
		if n := creating.Load(); n < int64(turns) || n > callers/4 {
			t.Errorf("%d callers created an instance, want %d and few more", n, turns)
		}
	})
}

// TestTakeAfterFailure: callers that wait get their turn when a creation fails.
func TestTakeAfterFailure(t *testing.T) {
	p := New(NewIdle[*fake](1 << 30))
	defer p.Close()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := p.Take(t.Context(), 1, none); !errors.Is(err, errEmpty) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
}
