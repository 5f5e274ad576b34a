package wasm

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/pool"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// newDescribed creates an instance and calls describe in it, which every instance
// executes before its first call: it runs the guest's initialisation, and a replay
// then starts from the same state as the attempt did. It returns the manifest.
func (m *Module) newDescribed(c *call) (*instance, []byte, error) {
	onCall := c.onCall
	c.onCall = nil // describe makes no host calls
	defer func() { c.onCall = onCall }()
	inst, err := newInstance(c, m.code, m.host.arena)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := inst.call(c, abi.ExportDescribe, nil, nil)
	if err != nil {
		inst.Close()
		return nil, nil, err
	}
	inst.start = inst.memories.Size()
	return inst, manifest.Text, nil
}

// acquireInstance returns an instance for one call. Pooled instances all start with
// the same seed, because the attempt of the call is not known when one is created.
// The others start with the seed of the attempt; of a prewarmed instance the attempt
// took the seed over. The randomness that a guest's runtime draws at its start, such
// as the order of Go maps, therefore differs between attempts and repeats in a
// replay.
func (m *Module) acquireInstance(c *call, pure bool) (inst *instance, reused bool, err error) {
	if m.pool == nil {
		if inst := m.prewarmer.take(c.seed, c.limits.MemoryBytes); inst != nil {
			return inst, false, nil
		}
		inst, _, err = m.newDescribed(c)
		return inst, false, err
	}
	create := func() (*instance, error) {
		c.resumeCompute()
		defer c.pauseCompute()
		seed := c.seed
		c.seed = 0
		defer func() { c.seed = seed }()
		inst, _, err := m.newDescribed(c)
		return inst, err
	}
	c.pauseCompute() // the wait for an instance is not the guest's time
	defer c.resumeCompute()
	if !m.trusted && pure {
		inst, err = m.pool.Create(create)
		return inst, false, err
	}
	if inst, err = m.pool.Take(c.ctx, int(c.limits.MemoryBytes), create); err != nil {
		if c.ctx.Err() != nil {
			err = c.endError()
		}
		return nil, false, err
	}
	return inst, inst.calls > 0, nil
}

// When a pooled instance is closed instead of kept.
const (
	maxCalls = 1_000
	maxAge   = 10 * time.Minute
)

// reusable reports whether an instance may serve another call. Text on stderr counts
// as a fault, and memory that has doubled as a leak.
func (inst *instance) reusable() bool {
	return inst.exited == nil && len(inst.stderr.tail) == 0 && inst.calls < maxCalls &&
		time.Since(inst.born) < maxAge && inst.memories.Size() <= 2*inst.start && inst.memories.GrowError() == nil
}

// keep returns an instance to the pool.
func (m *Module) keep(inst *instance) {
	inst.current = nil
	m.pool.Put(inst, inst.memories.Total())
}

// discard closes an instance after its call.
func (m *Module) discard(inst *instance) {
	if m.pool == nil {
		inst.Close()
		return
	}
	m.pool.Drop(inst)
}

var _ pool.Instance = (*instance)(nil)
