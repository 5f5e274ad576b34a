package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Probe reaches parts of an engine that no run shows alone, to measure them.
// Nothing that it does is recorded.
//
// # Concurrency
//
// Safe for concurrent use.
type Probe struct {
	rt   *Runtime
	seed uint64
}

// Probe returns the runtime's probe.
func (rt *Runtime) Probe() Probe { return Probe{rt: rt, seed: 1} }

// Condition evaluates a condition on variables.
func (p Probe) Condition(ctx context.Context, source string, vars map[string]json.RawMessage) (truthy bool, err error) {
	v, err := p.rt.conditions.Eval(ctx, "", source, cond.Vars(func(name string) (json.RawMessage, bool) {
		value, ok := vars[name]
		return value, ok
	}))
	return v.Truthy, err
}

// Guest runs the guest of a step type once, without the engine around it: every
// host call is answered at once with answer, the JSON of what comes under "ok".
func (p Probe) Guest(ctx context.Context, t sentinels.StepType, fields, answer json.RawMessage) (json.RawMessage, error) {
	table := p.rt.plugins.Use()
	defer p.rt.plugins.Done(table)
	mod, err := table.Lookup(t)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	input, err := json.Marshal(map[string]any{
		"abi":     abi.Version,
		"step":    map[string]any{"type": t, "address": "0", "path": "0", "fields": fields},
		"run":     map[string]any{"id": execution.NewRunID(), "sentinel": "probe", "iteration": 1, "workspace": "/", "key": "probe"},
		"attempt": 1,
	})
	if err != nil {
		return nil, err
	}
	reply := wasm.Reply{Body: append(append([]byte(`{"ok":`), answer...), '}'), Now: now}
	res, err := mod.Run(ctx, wasm.Invocation{Input: input, Seed: p.seed, ClockBase: now, Call: func(context.Context, string, []byte) (wasm.Reply, error) {
		return reply, nil
	}})
	return res.Output, err
}

// Ahead returns a probe whose next Guest of a step type finds an instance that
// was made ahead, as the attempts of a run do; any other makes its own. ok is
// false while none is ready.
func (p Probe) Ahead(t sentinels.StepType) (ready Probe, ok bool) {
	table := p.rt.plugins.Use()
	defer p.rt.plugins.Done(table)
	mod, err := table.Lookup(t)
	if err != nil {
		return p, false
	}
	if seed, ready := mod.Seed(); ready {
		p.seed = seed
		return p, true
	}
	return p, false
}

// Waiting returns how many runs have begun to wait: nothing of them executes,
// and what they wait for is in the journal.
func (p Probe) Waiting() int { return p.rt.exec.Waiting() }
