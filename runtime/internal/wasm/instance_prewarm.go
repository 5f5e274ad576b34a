package wasm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/pool"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Number of prewarmed instances, and backoff after a failure to create one.
const (
	maxPrewarmed = 16 // of one module
	minBackoff   = time.Second
	maxBackoff   = time.Minute
)

// prewarmer keeps instances of one module that are described and have served no
// call, for calls to come. Each has a seed of its own from its first instruction on,
// and serves the one call with that seed. It is therefore in the same state as a
// fresh instance for that call, and as the one that replays it.
//
// It keeps one instance, and more when callers find none: at most twice as many as
// there are calls at a time, and none after a minute without callers. Their memory
// counts as memory of guests. They are closed when a call needs it.
//
// # Concurrency
//
// It is safe for concurrent use. One goroutine creates instances while more are
// wanted. close ends it.
type prewarmer struct {
	module *Module
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	worker sync.WaitGroup

	mu       sync.Mutex
	ready    []*instance // the oldest first
	want     int
	lastCall time.Time   // when a caller last requested a seed
	timer    *time.Timer // closes unused instances; nil if none is ready
	busy     bool        // the worker is active
	backoff  time.Duration
	retryAt  time.Time // no attempt before it, after a failure
	closed   bool
}

func newPrewarmer(m *Module) *prewarmer {
	p := &prewarmer{module: m, want: 1, lastCall: time.Now()}
	p.ctx, p.cancel = context.WithCancel(m.host.ctx)
	return p
}

// seed returns the seed of a ready instance, each once. If it has none, more are
// created; calls is the number of active calls.
func (p *prewarmer) seed(calls int) (seed uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastCall = time.Now()
	for _, inst := range p.ready {
		if !inst.offered {
			inst.offered, seed, ok = true, inst.seed, true
			break
		}
	}
	if !ok {
		p.want = min(p.want+1, 2*(calls+len(p.ready)+1), maxPrewarmed)
	}
	p.refill()
	return seed, ok
}

// wantsMore reports whether another instance is wanted. Instances whose seed was
// returned count only against an upper bound, for seeds that no call uses. The caller
// holds the mutex.
func (p *prewarmer) wantsMore() bool {
	free := 0
	for _, inst := range p.ready {
		if !inst.offered {
			free++
		}
	}
	return !p.closed && free < p.want && len(p.ready) < 2*maxPrewarmed
}

// take returns the instance of a seed if its memory limit can be limit, or nil.
func (p *prewarmer) take(seed uint64, limit int64) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, inst := range p.ready {
		if inst.seed == seed && inst.offered && inst.SetLimit(int(limit)) {
			p.ready = slices.Delete(p.ready, i, i+1)
			p.refill()
			return inst
		}
	}
	return nil
}

// put adds a described instance, or closes it after close.
func (p *prewarmer) put(inst *instance) {
	inst.current = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		inst.Close()
		return
	}
	p.ready = append(p.ready, inst)
	if p.timer == nil {
		p.timer = time.AfterFunc(pool.IdleTimeout, p.expire)
	}
}

// refill starts the worker if more instances are wanted. The caller holds the mutex.
func (p *prewarmer) refill() {
	if p.busy || !p.wantsMore() || time.Now().Before(p.retryAt) {
		return
	}
	p.busy = true
	p.worker.Go(p.fill)
}

// fill creates instances until no more are wanted. After a failure it ends, and
// starts again after a backoff. describe succeeded during the load, so the cause is
// missing memory or a guest that depends on randomness.
func (p *prewarmer) fill() {
	for {
		p.mu.Lock()
		if !p.wantsMore() || !p.module.host.arena.HasSpare() {
			p.busy = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		inst, err := p.newInstance()
		if err == nil {
			p.put(inst)
			p.mu.Lock()
			p.backoff = 0
			p.mu.Unlock()
			continue
		}
		p.mu.Lock()
		first := p.backoff == 0
		p.backoff = min(max(2*p.backoff, minBackoff), maxBackoff)
		p.retryAt = time.Now().Add(p.backoff)
		p.busy = false
		p.mu.Unlock()
		if first && p.ctx.Err() == nil && abi.CodeOf(err) != abi.Unavailable {
			p.module.host.logger.Warn("cannot prewarm an instance of a plugin; its calls create their own",
				"plugin", p.module.manifest.Name, "digest", p.module.digest, "error", err)
		}
		return
	}
}

// newInstance creates an instance with a seed of its own.
func (p *prewarmer) newInstance() (*instance, error) {
	inv := Invocation{Compute: auxTimeout, Seed: newSeed()}
	c, done := p.module.host.newCall(p.ctx, inv.withDefaults())
	defer done()
	c.limits.MemoryBytes = p.module.prewarmMemory()
	inst, _, err := p.module.newDescribed(c)
	return inst, err
}

// expire closes instances that no caller has used for idleTimeout.
func (p *prewarmer) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if p.closed {
		return
	}
	if unused := time.Since(p.lastCall); unused < pool.IdleTimeout {
		p.timer = time.AfterFunc(pool.IdleTimeout-unused, p.expire)
		// A seed that was returned long ago will not be used.
		p.closeIf(func(inst *instance) bool { return inst.offered && time.Since(inst.born) >= pool.IdleTimeout })
		return
	}
	p.want = 1
	p.closeIf(func(*instance) bool { return true })
}

// closeAll closes all instances, because a call needs their memory. It reports false
// if there was none.
func (p *prewarmer) closeAll() (closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	closed = len(p.ready) > 0
	p.closeIf(func(*instance) bool { return true })
	return closed
}

// closeIf closes the instances that match. The caller holds the mutex meanwhile, so
// that their memory is free when another caller gets it.
func (p *prewarmer) closeIf(which func(*instance) bool) {
	p.ready = slices.DeleteFunc(p.ready, func(inst *instance) bool {
		if !which(inst) {
			return false
		}
		inst.Close()
		return true
	})
}

// close closes all instances, and makes put close later ones.
func (p *prewarmer) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.closeIf(func(*instance) bool { return true })
	p.mu.Unlock()
	p.worker.Wait()
}

// newSeed returns an unpredictable seed.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Seed returns the seed of a prewarmed instance. A Run with it uses that instance.
// ok is false if none is ready, and always for a module whose instances are reused.
// Any other seed works as well, in a fresh instance. Each seed is returned once, and
// its instance exists for a minute.
func (m *Module) Seed() (seed uint64, ok bool) {
	if !m.isReady() || m.prewarmer == nil {
		return 0, false
	}
	m.mu.Lock()
	calls, released := m.calls, m.refs == 0
	m.mu.Unlock()
	if released {
		return 0, false
	}
	return m.prewarmer.seed(calls)
}

// prewarmMemory returns the memory limit of prewarmed instances, which is the default
// of a call.
func (m *Module) prewarmMemory() int64 {
	return min(max(Invocation{}.withDefaults().Limits.MemoryBytes, m.minMemory), m.host.maxMemory)
}

// reclaimMemory frees memory for a call that exceeds MaxResidentBytes by excess: it
// closes the prewarmed instances of all modules, or idle ones if there are none. It
// reports false if there is neither. The caller must not hold a lock that this function
// takes, and no instance is created under one.
func (h *Host) reclaimMemory(excess int64) (freed bool) {
	h.mu.Lock()
	all := make([]*prewarmer, 0, len(h.modules))
	for m := range h.modules {
		if m.prewarmer != nil {
			all = append(all, m.prewarmer)
		}
	}
	h.mu.Unlock()
	for _, p := range all {
		freed = p.closeAll() || freed
	}
	return freed || h.idle.Reclaim(excess)
}
