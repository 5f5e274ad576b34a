package pluginset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Limits of one call of a step type in a pure role, ABI clause A9.8.
const (
	evaluateTime   = 2 * time.Second
	evaluateOutput = 256 << 10 // bytes
)

// evaluateClock is the time that a guest in a pure role sees, so that its output depends on
// its fields alone.
var evaluateClock = time.Unix(0, 0).UTC()

// Evaluate executes a step type in a pure role: one call of run with the fields, outside of
// a run, in which every host call is denied. memory is the limit in bytes where the grant
// has none. The output keeps the contract of the role. The error denied means that the
// role is not active, not_found that there is none.
func (s *Set) Evaluate(ctx context.Context, as abi.Role, name sentinels.StepType, fields json.RawMessage, memory int64) (json.RawMessage, error) {
	table := s.Use()
	defer s.Done(table)
	m := table.byType[name]
	if m == nil || !as.Pure() || !m.hasRole(name, as) || !m.provides(as) {
		if e := s.Unprovided(as, string(name)); e != nil {
			return nil, e
		}
		return nil, failure.New(abi.NotFound, "no plugin provides the %s %q", as, name)
	}
	if spec, _ := m.Fields(name); spec != nil {
		if err := spec.CheckFields(fields); err != nil {
			return nil, failure.New(abi.BadFields, "%s %q: %v", as, name, err)
		}
	}
	input, err := pureInput(name, fields)
	if err != nil {
		return nil, err
	}
	if grant, _ := m.Allowed(); grant.Memory > 0 {
		memory = grant.Memory
	}
	res, err := m.Run(ctx, wasm.Invocation{
		Input: input, ClockBase: evaluateClock, Timeout: evaluateTime, Compute: evaluateTime,
		Limits: wasm.Limits{MemoryBytes: min(memory, plugin.MaxMemory), OutputBytes: evaluateOutput},
	})
	if err == nil {
		err = role.CheckOutput(as, fields, res.Output)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		var coded *abi.Error
		if !errors.As(err, &coded) {
			err = abi.New(abi.Output, err.Error())
		}
		return nil, fmt.Errorf("%s %q: %w", as, name, err)
	}
	return res.Output, nil
}

// hasRole reports whether a step type has a role in the manifest.
func (m *Module) hasRole(name sentinels.StepType, as abi.Role) bool {
	for _, t := range m.Manifest().Steps {
		if t.Type == string(name) {
			return t.Provides != nil && t.Provides.As == as
		}
	}
	return false
}

// pureInput returns the run input, ABI clause A3, of a call outside of a run.
func pureInput(name sentinels.StepType, fields json.RawMessage) ([]byte, error) {
	type step struct {
		Type    sentinels.StepType `json:"type"`
		Address string             `json:"address"`
		Path    string             `json:"path"`
		Fields  json.RawMessage    `json:"fields"`
	}
	type run struct {
		ID        string `json:"id"`
		Sentinel  string `json:"sentinel"`
		Iteration int    `json:"iteration"`
		Workspace string `json:"workspace"`
		Key       string `json:"key"`
	}
	return json.Marshal(struct {
		ABI     int  `json:"abi"`
		Step    step `json:"step"`
		Run     run  `json:"run"`
		Attempt int  `json:"attempt"`
	}{abi.Version, step{name, "0", "0", fields}, run{Iteration: 1}, 1})
}
