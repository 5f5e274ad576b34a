package wasm

import (
	"sync"
	"time"
)

// When a pooled instance is thrown away instead of kept.
const (
	maxCalls    = 1_000
	maxAge      = 10 * time.Minute
	idleTimeout = time.Minute
)

// pool keeps idle instances of one module, the last used on top. Taking one
// gives it to the caller alone; only a call without any fault puts it back.
//
// It is safe for concurrent use and starts no goroutine but the timer that
// drops what was unused for a minute, which runs only while something is idle.
type pool struct {
	max int

	mu     sync.Mutex
	idle   []*instance
	timer  *time.Timer
	closed bool
}

func newPool(most int) *pool { return &pool{max: most} }

// take returns an idle instance that may use limit bytes, or nil.
func (p *pool) take(limit int64) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		inst := p.idle[i]
		if inst.memories.setLimit(int(limit)) {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			return inst
		}
	}
	return nil
}

// reusable reports whether an instance may serve another call. What it wrote to
// stderr counts as a fault, and memory that doubled as a leak.
func (p *pool) reusable(inst *instance) bool {
	return inst.exited == nil && len(inst.stderr.tail) == 0 && inst.calls < maxCalls &&
		time.Since(inst.born) < maxAge && inst.memories.size() <= 2*inst.start && inst.memories.growError() == nil
}

// put makes an instance idle, or closes it if there are enough.
func (p *pool) put(inst *instance) {
	inst.current, inst.idle = nil, time.Now()
	p.mu.Lock()
	if p.closed || len(p.idle) >= p.max {
		p.mu.Unlock()
		inst.close()
		return
	}
	p.idle = append(p.idle, inst)
	if p.timer == nil {
		p.timer = time.AfterFunc(idleTimeout, p.sweep)
	}
	p.mu.Unlock()
}

// sweep closes what was unused for too long, and comes again while there is more.
func (p *pool) sweep() {
	p.mu.Lock()
	var old, young []*instance
	for _, inst := range p.idle {
		if time.Since(inst.idle) >= idleTimeout {
			old = append(old, inst)
		} else {
			young = append(young, inst)
		}
	}
	p.idle, p.timer = young, nil
	if len(young) > 0 && !p.closed {
		p.timer = time.AfterFunc(idleTimeout, p.sweep)
	}
	// Closed under the lock, so that close returns after they are gone.
	for _, inst := range old {
		inst.close()
	}
	p.mu.Unlock()
}

// close closes the idle instances and every one that is put back later.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	for _, inst := range p.idle {
		inst.close()
	}
	p.idle = nil
}
