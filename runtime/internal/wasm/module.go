package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Module is one loaded plugin version. It counts its references and frees what
// it holds, compiled code and idle instances, when the last one is gone.
type Module struct {
	host      *Host
	digest    string
	wasm      []byte
	functions []string // host functions it imports, sorted
	manifest  Manifest // set by describe, before the module is handed out
	trusted   bool
	validates bool      // it has the optional export
	minMemory int64     // bytes of linear memory it starts with
	code      *compiled // safe for concurrent instantiation
	pool      *pool     // nil: every call has an instance of its own
	ahead     *ahead    // where pool is nil: such instances, ready

	mu     sync.Mutex
	refs   int // of holders; calls are begun only while there is one
	calls  int // in flight
	closed bool
	closes sync.Once
}

// Digest returns the SHA-256 of the module's original bytes, in hex.
func (m *Module) Digest() string { return m.digest }

// Manifest returns what the module said of itself when it was loaded. Its
// slices and maps must not be changed.
func (m *Module) Manifest() Manifest { return m.manifest }

// Functions returns the host functions that the module imports, sorted.
func (m *Module) Functions() []string { return slices.Clone(m.functions) }

// Bytes returns the module's original bytes, which must not be changed.
func (m *Module) Bytes() []byte { return m.wasm }

// Reuse pools the instances of a stateless module from now on, as LoadOptions.Reuse
// does at its load. It must come before the first call.
func (m *Module) Reuse() {
	m.host.mu.Lock() // relieve looks at it
	before := m.ahead
	m.pool, m.ahead = newPool(m.host.maxIdle), nil
	m.host.mu.Unlock()
	if before != nil {
		before.close()
	}
}

// Retain adds a reference. It reports false if the module is already closed.
func (m *Module) Retain() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs == 0 || m.closed {
		return false
	}
	m.refs++
	return true
}

// Release gives a reference back; after the last one no call begins, and the
// module closes when those in flight have ended. One that was never held is a
// programming error and panics.
func (m *Module) Release() {
	m.mu.Lock()
	if m.refs == 0 {
		m.mu.Unlock()
		panic("wasm: Release of a module that is not held")
	}
	m.refs--
	last := m.refs == 0 && m.calls == 0
	m.mu.Unlock()
	if last {
		m.close()
	}
}

// enter begins a call: it holds the host, and the module without being a
// reference, or callers that overlap would keep a released module for ever.
func (m *Module) enter() (leave func(), err error) {
	if !m.host.beginUse() {
		return nil, abi.New(abi.Cancelled, fmt.Sprintf("call plugin %q: the host is closed", m.manifest.Name))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs == 0 {
		m.host.uses.Done()
		return nil, abi.New(abi.Unavailable, fmt.Sprintf("call plugin %q: version %s is unloaded", m.manifest.Name, m.digest))
	}
	m.calls++
	return m.leave, nil
}

func (m *Module) leave() {
	m.mu.Lock()
	m.calls--
	last := m.refs == 0 && m.calls == 0
	m.mu.Unlock()
	if last {
		m.close()
	}
	m.host.uses.Done()
}

// close frees the module; a second caller waits for the first. Nothing runs in
// it: the last call to end closes it, and Host.Close waits for the calls.
func (m *Module) close() {
	m.closes.Do(func() {
		m.mu.Lock()
		m.closed = true
		m.mu.Unlock()
		m.host.mu.Lock()
		delete(m.host.modules, m)
		m.host.mu.Unlock()
		if m.pool != nil {
			m.pool.close()
		}
		if m.ahead != nil {
			m.ahead.close()
		}
		m.code.close()
	})
}

// fresh makes an instance and describes it, as every instance is before its
// first call: it runs the guest's own initialisation, and a replay starts from
// the same state as the attempt did.
func (m *Module) fresh(c *call) (*instance, []byte, error) {
	answer := c.answer
	c.answer = nil
	defer func() { c.answer = answer }()
	inst, err := newInstance(c, m.code, m.host.arena)
	if err != nil {
		return nil, nil, err
	}
	text, err := inst.call(c, abi.ExportDescribe, nil)
	if err != nil {
		inst.close()
		return nil, nil, err
	}
	inst.start = inst.memories.size()
	return inst, text, nil
}

// checkout returns an instance for one call. Pooled instances all start alike,
// whatever the attempt, since the attempt that gets one is not known when it is
// made. The others have the attempt's seed from their first instruction, also
// those that were made ahead, because then the attempt took its seed from the
// instance: so chance that a guest's runtime draws at its start, like the order
// of a Go map, differs between attempts and is the same when one is replayed.
func (m *Module) checkout(c *call, pure bool) (inst *instance, reused bool, err error) {
	if m.pool == nil {
		if inst := m.ahead.take(c.seed, c.limits.MemoryBytes); inst != nil {
			return inst, false, nil
		}
		inst, _, err = m.fresh(c)
		return inst, false, err
	}
	if m.trusted || !pure {
		if inst := m.pool.take(c.limits.MemoryBytes); inst != nil {
			return inst, inst.calls > 0, nil
		}
	}
	seed := c.seed
	c.seed = 0
	inst, _, err = m.fresh(c)
	c.seed = seed
	return inst, false, err
}

// Run carries out one attempt of a step. Its error is an [*abi.Error], or what
// Invocation.Call returned. With an error, Result holds Stderr and MemoryBytes.
func (m *Module) Run(ctx context.Context, inv Invocation) (Result, error) {
	return m.invoke(ctx, abi.ExportRun, inv, func(output []byte, result *Result) error {
		var shape map[string]json.RawMessage
		switch {
		case !utf8.Valid(output):
			return abi.New(abi.Output, "the plugin's output is not UTF-8")
		case json.Unmarshal(output, &shape) != nil:
			return abi.New(abi.Output, fmt.Sprintf("the plugin's output is no JSON object: %q", clip(string(output), 80)))
		}
		value, ok := shape["output"]
		if !ok {
			return abi.New(abi.Output, `the plugin's output has no key "output"`)
		}
		result.Output = value
		return nil
	})
}

// Validate asks the module about a step's fields. A module without a validate
// export finds no problems. Host calls are denied meanwhile.
func (m *Module) Validate(ctx context.Context, stepType string, fields json.RawMessage) ([]Problem, error) {
	if !m.validates {
		return nil, nil
	}
	input, err := json.Marshal(map[string]any{"type": stepType, "fields": fields})
	if err != nil {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("validate %q: %v", stepType, err))
	}
	var answer struct {
		Problems []Problem `json:"problems"`
	}
	_, err = m.invoke(ctx, abi.ExportValidate, Invocation{Input: input, Compute: helperTime}, func(output []byte, _ *Result) error {
		if err := json.Unmarshal(output, &answer); err != nil {
			return abi.New(abi.Output, fmt.Sprintf("validate %q: the plugin's answer is no list of problems: %v", stepType, err))
		}
		return nil
	})
	return answer.Problems, err
}

// invoke calls an export in an instance, and keeps the instance if that is
// allowed and the call, its output included, left nothing suspicious.
func (m *Module) invoke(ctx context.Context, export string, inv Invocation, read func(output []byte, result *Result) error) (result Result, err error) {
	inv = inv.withDefaults()
	switch {
	case inv.Limits.MemoryBytes > m.host.maxMemory:
		return result, abi.New(abi.Limit, fmt.Sprintf("call plugin %q: a memory limit of %d bytes, at most %d are allowed", m.manifest.Name, inv.Limits.MemoryBytes, m.host.maxMemory))
	case inv.Limits.MemoryBytes < m.minMemory:
		return result, abi.New(abi.Memory, fmt.Sprintf("call plugin %q: it starts with %d bytes of memory, the limit is %d", m.manifest.Name, m.minMemory, inv.Limits.MemoryBytes))
	case len(inv.Input) > maxInput:
		return result, abi.New(abi.Limit, fmt.Sprintf("call plugin %q: an input of %d bytes, at most %d are allowed", m.manifest.Name, len(inv.Input), maxInput))
	}
	leave, err := m.enter()
	if err != nil {
		return result, err
	}
	defer leave()
	began := time.Now()
	c, done := m.host.newCall(ctx, inv)
	defer done()
	inst, reused, err := m.checkout(c, inv.Pure)
	if err != nil {
		return result, err
	}
	made := inst.calls == 0 && inst.born.Before(began)
	// Whatever way this returns, the instance is kept or closed here and nowhere
	// else, and never while the guest is on the stack.
	keep := false
	defer func() {
		if keep {
			m.pool.put(inst)
		} else {
			inst.close()
		}
	}()
	inst.calls++
	inst.clock.begin(c.seed, export, c.base)
	inst.clock.maxSleep = inv.sleep()
	output, err := inst.call(c, export, inv.Input)
	result = Result{Stderr: inst.stderr.String(), MemoryBytes: inst.memories.size(), Reused: reused, Ahead: made}
	switch {
	case err != nil:
	case len(output) > inv.Limits.OutputBytes:
		err = abi.New(abi.Output, fmt.Sprintf("the plugin's output has %d bytes, at most %d are allowed", len(output), inv.Limits.OutputBytes))
	default:
		err = read(output, &result)
	}
	keep = err == nil && m.pool != nil && m.pool.fit(inst)
	return result, err
}
