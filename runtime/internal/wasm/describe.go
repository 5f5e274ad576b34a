package wasm

import (
	"bytes"
	"context"
	"fmt"
	stdruntime "runtime"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// What a guest's exports other than run may take of its own time, ABI clause A8.8.
const (
	// describeTime bounds describe when a module is loaded. A guest that was
	// interrupted and had less than half of it on a processor has another try of
	// busyFactor times as long: the machine was busy.
	describeTime = 2 * time.Second
	busyFactor   = 4
	// helperTime bounds validate, and describe in an instance that is made ahead or
	// in a module of our own.
	helperTime = 10 * time.Second
)

// describe reads the manifest in a first instance and checks it against the
// imports and the operator's grants. A module that is not trusted is described
// twice, in two instances with different seeds, which must agree.
func (m *Module) describe(ctx context.Context, opt LoadOptions) error {
	pooled := opt.Trusted || opt.Reuse // if it is stateless, which it is yet to say
	var seed uint64
	if !pooled {
		seed = newSeed() // the instance is kept for a call
	}
	inst, err := m.describeIn(ctx, seed)
	if err != nil {
		return err
	}
	defer func() {
		if inst != nil {
			inst.close()
		}
	}()
	if err := checkAsks(m.functions, m.manifest); err != nil {
		return err
	}
	if err := m.host.trySchemas(ctx, m); err != nil {
		return err
	}
	if opt.Allow != nil {
		if err := opt.Allow(m.manifest); err != nil {
			return err
		}
	}
	switch {
	case m.manifest.Stateless && pooled:
		m.pool = newPool(m.host.maxIdle)
		if m.pool.fit(inst) {
			m.pool.put(inst)
			inst = nil
		}
	case !pooled:
		m.ahead = newAhead(m)
		m.ahead.put(inst)
		inst = nil
	default:
		m.ahead = newAhead(m) // the first instance has the seed of pooled ones
	}
	return nil
}

// describeIn sets the manifest and returns the instance that it is of. A guest whose
// describe takes too long is remembered, unless it is trusted.
func (m *Module) describeIn(ctx context.Context, seed uint64) (*instance, error) {
	var cache *cache
	bounds := refusal{Time: m.host.describeTime}
	if !m.trusted {
		var err error
		if cache, err = m.host.childCache(); err != nil {
			return nil, err
		}
		if why := cache.checkRefusal(m.digest, describeRefusal, bounds); why != nil {
			return nil, why
		}
	}
	select {
	case m.host.describing <- struct{}{}:
		defer func() { <-m.host.describing }()
	case <-ctx.Done():
		return nil, abi.New(abi.Cancelled, "load plugin: "+context.Cause(ctx).Error())
	}
	inst, text, err := m.describePatiently(ctx, seed)
	if err == nil {
		if m.manifest, err = parseManifest(text); err == nil && !m.trusted {
			err = m.describeAgain(ctx, text)
		}
	}
	if err == nil {
		return inst, nil
	}
	if inst != nil {
		inst.close()
	}
	if cache != nil {
		cache.recordRefusal(m.digest, describeRefusal, bounds, err)
	}
	return nil, err
}

// describeAgain compares a manifest with that of another instance: a plugin whose
// manifest depends on chance could show the operator another one than it loads with.
func (m *Module) describeAgain(ctx context.Context, first []byte) error {
	inst, text, err := m.describePatiently(ctx, newSeed())
	if err != nil {
		return err
	}
	inst.close()
	if bytes.Equal(first, text) {
		return nil
	}
	// The first was parsed, so it is JSON; the second need not be.
	a, err := sentinels.Canonical(first)
	if err != nil {
		return abi.New(abi.Internal, "describe: "+err.Error())
	}
	b, err := sentinels.Canonical(text)
	if err == nil && bytes.Equal(a, b) {
		return nil
	}
	return &abi.Error{Code: abi.Plugin, Permanent: true, Message: fmt.Sprintf("describe: plugin %q wrote another manifest in a second instance", m.manifest.Name),
		Hint: "describe must not depend on random numbers, the clock or earlier calls"}
}

// describePatiently makes an instance and describes it, and tries once more with
// more time if the machine was too busy for the first try.
func (m *Module) describePatiently(ctx context.Context, seed uint64) (*instance, []byte, error) {
	limit := m.host.describeTime
	if m.trusted {
		limit = helperTime
	}
	inst, text, starved, err := m.describeTimed(ctx, seed, limit)
	if starved {
		inst, text, _, err = m.describeTimed(ctx, seed, busyFactor*limit)
	}
	return inst, text, err
}

// describeTimed describes within a time limit. starved reports that the limit was
// reached and that the guest had less than half of it on a processor; a timeout
// that is the guest's own fault is permanent.
func (m *Module) describeTimed(ctx context.Context, seed uint64, limit time.Duration) (inst *instance, text []byte, starved bool, err error) {
	// While no other goroutine has the thread, its processor time is the guest's.
	stdruntime.LockOSThread()
	defer stdruntime.UnlockOSThread()
	before, known := m.host.threadTime()
	inst, text, err = m.describeOnce(ctx, seed, limit)
	if e := abi.As(err); e == nil || e.Code != abi.Timeout || ctx.Err() != nil {
		return inst, text, false, err
	}
	after, _ := m.host.threadTime()
	starved = !known || after-before < limit/2
	return nil, nil, starved, &abi.Error{Code: abi.Timeout, Permanent: !starved, Hint: "describe writes the manifest and does nothing else",
		Message: fmt.Sprintf("describe: the plugin took more than its time limit of %s to start and describe itself", limit)}
}

// describeOnce makes an instance and describes it within a time limit.
func (m *Module) describeOnce(ctx context.Context, seed uint64, limit time.Duration) (*instance, []byte, error) {
	c, done := m.host.newCall(ctx, Invocation{Compute: limit, Seed: seed}.withDefaults())
	defer done()
	c.limits.MemoryBytes = m.aheadMemory()
	return m.fresh(c)
}
