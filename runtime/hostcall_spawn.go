package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type spawnRequest struct {
	Field    string          `json:"field"`
	Sentinel string          `json:"sentinel"`
	Inputs   json.RawMessage `json:"inputs"`
}

// callSpawn is clause A6.9. The child's start key is the call's with the
// attempts around it: however often a crash repeats the call there is one
// child, and a new attempt of the step has its own.
func (a *attempt) callSpawn(ctx context.Context, c *call) (callEnd, error) {
	var req spawnRequest
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	opt := StartOptions{Key: digest(a.callKey(c), fmt.Sprint(a.enclosing), fmt.Sprint(a.n)), Workspace: a.run.begin.Workspace, parent: a.run}
	def, stored, inline, e := a.childDefinition(req.Field, req.Sentinel)
	if e != nil {
		return callEnd{err: e}, nil
	}
	opt.Revision = stored
	if len(req.Inputs) > 0 && string(req.Inputs) != "null" {
		if err := json.Unmarshal(req.Inputs, &opt.Inputs); err != nil {
			return callEnd{err: errf(abi.BadFields, "inputs: an object is wanted")}, nil
		}
	}
	if inline {
		inherit(&opt, a.run)
	}
	id, err := a.run.rt.startRun(ctx, def, opt)
	if err != nil {
		if over(ctx) {
			return callEnd{}, context.Cause(ctx)
		}
		if errors.Is(err, ErrClosed) { // the process ends, and ctx is about to
			return callEnd{}, errShutdown
		}
		return callEnd{err: asError(err, abi.Internal)}, nil
	}
	end, err := reply(map[string]any{"run": id, "sentinel": def.ID})
	end.body.Child = id
	return end, err
}

// inherit gives an inline child its parent's inputs where it names none itself.
func inherit(opt *StartOptions, parent *run) {
	raw, err := parent.rt.load(parent.begin.Inputs)
	if err != nil || raw == nil {
		return
	}
	var inputs map[string]json.RawMessage
	if json.Unmarshal(raw, &inputs) != nil {
		return
	}
	for name, v := range opt.Inputs {
		inputs[name] = v
	}
	opt.Inputs, opt.lenient = inputs, true
}

// childDefinition finds what to start: a definition written in the step, one
// that it refers to, or a stored one by id.
func (a *attempt) childDefinition(field, id string) (def *sentinels.Definition, revision int, inline bool, e *abi.Error) {
	if field != "" {
		raw, ok := a.step.Fields[field]
		if !ok {
			return nil, 0, false, errf(abi.BadFields, "step %s has no field %q", a.address, field)
		}
		if id = storedID(raw); id == "" {
			def, problems := a.run.rt.Decode(raw, a.address+"."+field)
			if err := problemsError(problems); err != nil {
				return nil, 0, false, &abi.Error{Code: abi.BadFields, Field: field, Message: err.Error()}
			}
			return def, 0, true, nil
		}
	}
	stored, err := a.run.rt.Definition(sentinels.ID(id))
	if err != nil {
		return nil, 0, false, asError(err, abi.Internal)
	}
	def, err = a.run.rt.Decoded(stored)
	if err != nil {
		return nil, 0, false, asError(err, abi.BadFields)
	}
	return def, stored.Revision, false, nil
}

// checkNesting refuses a child that would be nested too deep, or that is one of
// the sentinels it would be nested in.
func (r *run) checkNesting(def *sentinels.Definition) error {
	lineage := append(append([]sentinels.ID(nil), r.begin.Ancestry...), r.begin.Sentinel)
	if len(lineage) >= r.rt.limits.Depth {
		return errf(abi.Limit, "nesting depth: %q would be %d sentinels deep, the limit is %d", def.ID, len(lineage)+1, r.rt.limits.Depth)
	}
	for _, id := range lineage {
		if id == def.ID {
			return errf(abi.Limit, "sentinel %q would start itself: %s", def.ID, fmt.Sprint(append(lineage, def.ID)))
		}
	}
	return nil
}

// childResult is what a step that awaits a child sees.
type childResult struct {
	Success    bool                       `json:"success"`
	Status     sentinels.Status           `json:"status"`
	Run        sentinels.RunID            `json:"run"`
	Iterations int                        `json:"iterations"`
	Output     json.RawMessage            `json:"output,omitempty"`
	Variables  map[string]json.RawMessage `json:"variables"`
	Error      *abi.Error                 `json:"error,omitempty"`
}

// forParent turns a run's result into what its parent sees: success is only a
// completed run whose output does not say otherwise.
func forParent(res Result) childResult {
	var output struct {
		Success *bool `json:"success"`
	}
	said := json.Unmarshal(res.Output, &output) == nil && output.Success != nil && !*output.Success
	return childResult{
		Success: res.Status == sentinels.StatusCompleted && !said, Status: res.Status, Run: res.Run,
		Iterations: res.Iterations, Output: res.Output, Variables: res.Variables, Error: res.Error,
	}
}
