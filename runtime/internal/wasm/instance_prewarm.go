package wasm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// How many instances are made ahead, and when that is given up for a while.
const (
	maxAhead       = 16 // of one module
	firstBackoff   = time.Second
	longestBackoff = time.Minute
)

// ahead keeps instances of one module that are described and have run nothing,
// for calls that are still to come. Each has a seed of its own, from its first
// instruction on, and serves the one call that is made with that seed: so it is
// in the state that a fresh instance for this call would be in, and so is the
// fresh one that replays it.
//
// It keeps one, more when callers find none, at most twice as many as there are
// calls at a time; none when nobody has asked for a minute. They count as memory
// of guests and are given up first when a call has no room.
//
// It is safe for concurrent use. One goroutine makes instances while some are
// wanted; close ends it.
type ahead struct {
	module *Module
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	making sync.WaitGroup

	mu      sync.Mutex
	ready   []*instance // the oldest first
	want    int
	asked   time.Time   // when a caller last asked
	timer   *time.Timer // drops all when nobody has asked for long; nil while nothing is ready
	busy    bool        // the goroutine is there
	backoff time.Duration
	resume  time.Time // not before this after a failure
	closed  bool
}

func newAhead(m *Module) *ahead {
	a := &ahead{module: m, want: 1, asked: time.Now()}
	a.ctx, a.cancel = context.WithCancel(m.host.ctx)
	return a
}

// seed offers the seed of a ready instance, each once. A caller that finds none
// makes it want more; calls is how many are under way.
func (a *ahead) seed(calls int) (seed uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Now()
	for _, inst := range a.ready {
		if !inst.offered {
			inst.offered, seed, ok = true, inst.seed, true
			break
		}
	}
	if !ok {
		a.want = min(a.want+1, 2*(calls+len(a.ready)+1), maxAhead)
	}
	a.refill()
	return seed, ok
}

// lacks reports whether another instance is wanted. Those that are offered count
// only so that seeds which nobody calls with do not add up. The caller holds the
// mutex.
func (a *ahead) lacks() bool {
	free := 0
	for _, inst := range a.ready {
		if !inst.offered {
			free++
		}
	}
	return !a.closed && free < a.want && len(a.ready) < 2*maxAhead
}

// take returns the instance of a seed if it may use limit bytes, or nil.
func (a *ahead) take(seed uint64, limit int64) *instance {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, inst := range a.ready {
		if inst.seed == seed && inst.offered && inst.memories.setLimit(int(limit)) {
			a.ready = slices.Delete(a.ready, i, i+1)
			a.refill()
			return inst
		}
	}
	return nil
}

// put adds an instance that was just described, or closes it.
func (a *ahead) put(inst *instance) {
	inst.current = nil
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		inst.close()
		return
	}
	a.ready = append(a.ready, inst)
	if a.timer == nil {
		a.timer = time.AfterFunc(maxUnused, a.sweep)
	}
}

// refill sees to it that instances are being made if some are wanted. The caller
// holds the mutex.
func (a *ahead) refill() {
	if a.busy || !a.lacks() || time.Now().Before(a.resume) {
		return
	}
	a.busy = true
	a.making.Go(a.make)
}

// make makes instances until there are as many as are wanted. A failure ends it
// for a while, longer each time: a guest that cannot be described now could at
// its load, so it is want of memory or a guest that misuses chance.
func (a *ahead) make() {
	for {
		a.mu.Lock()
		if !a.lacks() || !a.module.host.arena.roomy() {
			a.busy = false
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		inst, err := a.one()
		if err == nil {
			a.put(inst)
			a.mu.Lock()
			a.backoff = 0
			a.mu.Unlock()
			continue
		}
		a.mu.Lock()
		first := a.backoff == 0
		a.backoff = min(max(2*a.backoff, firstBackoff), longestBackoff)
		a.resume = time.Now().Add(a.backoff)
		a.busy = false
		a.mu.Unlock()
		if first && a.ctx.Err() == nil && abi.CodeOf(err) != abi.Unavailable {
			a.module.host.logger.Warn("an instance of a plugin could not be made ahead; its calls make their own",
				"plugin", a.module.manifest.Name, "digest", a.module.digest, "error", err)
		}
		return
	}
}

// one makes an instance with a seed of its own.
func (a *ahead) one() (*instance, error) {
	inv := Invocation{Compute: helperTime, Seed: newSeed()}
	c, done := a.module.host.newCall(a.ctx, inv.withDefaults())
	defer done()
	c.limits.MemoryBytes = a.module.aheadMemory()
	inst, _, err := a.module.fresh(c)
	return inst, err
}

// sweep drops what was made for callers who do not come.
func (a *ahead) sweep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = nil
	if a.closed {
		return
	}
	if unused := time.Since(a.asked); unused < maxUnused {
		a.timer = time.AfterFunc(maxUnused-unused, a.sweep)
		// A seed that was offered long ago is one that nobody will call with.
		a.drop(func(inst *instance) bool { return inst.offered && time.Since(inst.born) >= maxUnused })
		return
	}
	a.want = 1
	a.drop(func(*instance) bool { return true })
}

// empty drops all instances: somebody needs their memory now.
func (a *ahead) empty() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(func(*instance) bool { return true })
}

// drop closes instances. The caller holds the mutex, so that who drops knows that
// they are gone.
func (a *ahead) drop(which func(*instance) bool) {
	a.ready = slices.DeleteFunc(a.ready, func(inst *instance) bool {
		if !which(inst) {
			return false
		}
		inst.close()
		return true
	})
}

// close closes the instances, and every one that is put later.
func (a *ahead) close() {
	a.cancel()
	a.mu.Lock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.drop(func(*instance) bool { return true })
	a.mu.Unlock()
	a.making.Wait()
}

// newSeed draws a seed that nobody can foresee.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Seed offers the seed of an instance that was made ahead: a Run with it finds
// that instance and need not make one. ok is false if none is ready, and always
// for a module whose instances are reused; any seed is as good then. A seed is
// offered once and good for a minute.
func (m *Module) Seed() (seed uint64, ok bool) {
	if m.ahead == nil {
		return 0, false
	}
	m.mu.Lock()
	calls, gone := m.calls, m.refs == 0
	m.mu.Unlock()
	if gone {
		return 0, false
	}
	return m.ahead.seed(calls)
}

// aheadMemory is the limit with which instances are made ahead: that of a call
// which names none.
func (m *Module) aheadMemory() int64 {
	return min(max(Invocation{}.withDefaults().Limits.MemoryBytes, m.minMemory), m.host.maxMemory)
}

// relieve drops what was made ahead, of all modules, because a call has no room.
func (h *Host) relieve() {
	h.mu.Lock()
	all := make([]*ahead, 0, len(h.modules))
	for m := range h.modules {
		if m.ahead != nil {
			all = append(all, m.ahead)
		}
	}
	h.mu.Unlock()
	for _, a := range all {
		a.empty()
	}
}
