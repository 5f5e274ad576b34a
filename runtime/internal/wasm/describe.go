package wasm

import (
	"bytes"
	"context"
	"fmt"
	stdruntime "runtime"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/link"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/manifest"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/pool"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Time limits of a guest's exports other than run, ABI clause A8.8.
const (
	// describeTime limits describe during a load. A guest that is interrupted and had
	// less than half of it on a processor gets a second attempt with busyFactor times
	// the limit, because the machine was busy.
	describeTime = 2 * time.Second
	busyFactor   = 4
	// auxTimeout limits validate, and describe of prewarmed instances and of trusted
	// modules.
	auxTimeout = 10 * time.Second
)

// describe gets the manifest from a first instance and checks it against the
// imports and the operator's grants. An untrusted module is described in two
// instances with different seeds, whose manifests must be equal.
func (m *Module) describe(ctx context.Context, opt LoadOptions) error {
	pooled := opt.Trusted || opt.Reuse // if the manifest declares it stateless
	var seed uint64
	if !pooled {
		seed = newSeed() // the instance serves a call
	}
	inst, err := m.firstInstance(ctx, seed)
	if err != nil {
		return err
	}
	defer func() {
		if inst != nil {
			inst.Close()
		}
	}()
	if err := link.Permissions(m.functions, m.manifest); err != nil {
		return err
	}
	if err := m.host.checkSchemas(ctx, m); err != nil {
		return err
	}
	if err := m.manifest.CheckRoles(); err != nil {
		return err
	}
	if opt.Allow != nil {
		if err := opt.Allow(m.manifest); err != nil {
			return err
		}
	}
	m.keepFirst(inst, pooled)
	inst = nil
	return nil
}

// keepFirst keeps the first instance, which has described itself, for the calls to come, or
// closes it. pooled says that instances are reused if the module is stateless.
func (m *Module) keepFirst(inst *instance, pooled bool) {
	m.host.mu.Lock() // for reclaimMemory
	stateless := m.manifest.Stateless && pooled
	if stateless {
		m.pool = pool.New(m.host.idle)
	} else {
		m.prewarmer = newPrewarmer(m)
	}
	m.host.mu.Unlock()
	switch {
	case stateless && inst.reusable():
		inst.current = nil
		m.pool.Add(inst, inst.memories.Total())
	case !pooled:
		m.prewarmer.put(inst)
	default: // without a pool, the first instance has the seed of pooled ones
		inst.Close()
	}
}

// firstInstance creates an instance, sets the manifest and returns the instance. A
// describe that exceeds its time limit is recorded as a refusal, for a short time if the machine was busy, except of a
// trusted module.
func (m *Module) firstInstance(ctx context.Context, seed uint64) (*instance, error) {
	var cache *compilecache.Cache
	limits := compilecache.Refusal{Time: m.host.describeTime}
	if !m.trusted {
		var err error
		if cache, err = m.host.childCache(); err != nil {
			return nil, err
		}
		if err := cache.CheckRefusal(m.digest, compilecache.DescribeRefusal, limits); err != nil {
			return nil, err
		}
	}
	done, err := acquire(ctx, m.host.describing)
	if err != nil {
		return nil, err
	}
	defer done()
	inst, text, err := m.describeWithRetry(ctx, seed)
	if err == nil {
		if m.manifest, err = manifest.Parse(text); err == nil && !m.trusted {
			err = m.compareManifest(ctx, text)
		}
	}
	if err == nil {
		return inst, nil
	}
	if inst != nil {
		inst.Close()
	}
	if cache != nil {
		e := abi.As(err)
		limits.Busy = e != nil && e.Code == abi.Timeout && !e.Permanent && ctx.Err() == nil
		cache.RecordRefusal(m.digest, compilecache.DescribeRefusal, limits, err)
	}
	return nil, err
}

// compareManifest compares the manifest with that of a second instance. Otherwise a
// plugin whose manifest is random could show the operator another one than it loads
// with.
func (m *Module) compareManifest(ctx context.Context, first []byte) error {
	inst, text, err := m.describeWithRetry(ctx, newSeed())
	if err != nil {
		return err
	}
	inst.Close()
	if bytes.Equal(first, text) {
		return nil
	}
	// The first has been parsed and is JSON. The second may be anything.
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

// describeWithRetry creates an instance and describes it. It makes a second attempt
// with more time if the machine was too busy for the first.
func (m *Module) describeWithRetry(ctx context.Context, seed uint64) (*instance, []byte, error) {
	limit := m.host.describeTime
	if m.trusted {
		limit = auxTimeout
	}
	inst, text, busy, err := m.describeTimed(ctx, seed, limit)
	if busy {
		inst, text, _, err = m.describeTimed(ctx, seed, busyFactor*limit)
	}
	return inst, text, err
}

// describeTimed describes within a time limit. busy reports that the limit was
// exceeded while the guest had less than half of the time of a first attempt on a processor. Otherwise a
// timeout is the guest's fault and permanent.
func (m *Module) describeTimed(ctx context.Context, seed uint64, limit time.Duration) (inst *instance, text []byte, busy bool, err error) {
	// The processor time of a locked thread is that of the guest.
	stdruntime.LockOSThread()
	defer stdruntime.UnlockOSThread()
	before, known := m.host.threadTime()
	inst, text, err = m.describeOnce(ctx, seed, limit)
	if e := abi.As(err); e == nil || e.Code != abi.Timeout || ctx.Err() != nil {
		return inst, text, false, err
	}
	after, _ := m.host.threadTime()
	busy = !known || after-before < min(limit, m.host.describeTime)/2
	hint := "describe should only return the manifest"
	if busy {
		hint += fmt.Sprintf("; the machine was busy, so that it is tried again after %s", compilecache.BusyMaxAge)
	}
	return nil, nil, busy, &abi.Error{Code: abi.Timeout, Permanent: !busy, Hint: hint,
		Message: fmt.Sprintf("describe: the plugin took more than its time limit of %s to start and describe itself", limit)}
}

// describeOnce creates an instance and describes it within a time limit.
func (m *Module) describeOnce(ctx context.Context, seed uint64, limit time.Duration) (*instance, []byte, error) {
	c, done := m.host.newCall(ctx, Invocation{Compute: limit, Seed: seed}.withDefaults())
	defer done()
	c.limits.MemoryBytes = m.prewarmMemory()
	return m.newDescribed(c)
}
