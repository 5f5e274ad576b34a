package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// activeAbove returns the nearest active ancestor of r, nil if there is none. A child
// counts for that ancestor even if its parent has ended: a parent can therefore not end
// early to leave behind children that are not counted, and a resumed run counts the
// same children as before. The caller holds ex.mu.
func (ex *Executor) activeAbove(r *liveRun) *liveRun {
	for up := r.parent; up != nil; up = up.parent {
		if ex.runs[up.id] == up {
			return up
		}
	}
	return nil
}

// checkChildren returns an error if the run above r has as many active children as it
// may have. The caller holds ex.mu until r is in ex.runs, so that concurrent starts
// cannot exceed the limit together.
func (ex *Executor) checkChildren(r *liveRun) error {
	up, limit := ex.activeAbove(r), ex.svc.Limits.Children
	if up == nil || up.children < limit {
		return nil
	}
	return &abi.Error{
		Code:    abi.Limit,
		Message: fmt.Sprintf("children: run %s has %d active child runs, the limit is %d", up.id, up.children, limit),
		Hint:    "start fewer at once, or wait for some of them to end; active runs that an ended child started count too",
	}
}

// removeLocked removes r, which has ended, from the active runs. Its children count for
// the nearest active run above it from then on. The caller holds ex.mu.
func (ex *Executor) removeLocked(r *liveRun) {
	delete(ex.runs, r.id)
	if up := ex.activeAbove(r); up != nil {
		up.children += r.children - 1
	}
}

// StartChild implements [step.Children].
func (r *liveRun) StartChild(ctx context.Context, def *sentinels.Definition, child step.ChildOptions) (sentinels.RunID, error) {
	opt := startOptions{StartOptions: run.StartOptions{Key: child.Key, Workspace: r.begin.Workspace, Inputs: child.Inputs, Revision: child.Revision}, parent: r}
	if child.Inherit {
		inherit(&opt, r)
	}
	id, err := r.ex.startRun(ctx, def, opt)
	if errors.Is(err, ErrClosed) {
		err = step.ErrShutdown
	}
	return id, err
}

// AwaitRun implements [step.Children].
func (r *liveRun) AwaitRun(ctx context.Context, id sentinels.RunID) (run.Result, error) {
	res, err := r.ex.await(ctx, id)
	if err == nil && res.detached {
		err = step.ErrShutdown
	}
	return res.Result, err
}

// StopRun implements [step.Children].
func (r *liveRun) StopRun(id sentinels.RunID, cause error) { r.ex.stopTree(id, cause) }

// inherit adds the parent's inputs to those of an inline child; inputs that the child
// is given take precedence.
func inherit(opt *startOptions, parent *liveRun) {
	raw, err := parent.ex.svc.Values.Load(parent.begin.Inputs)
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

// checkNesting returns an error if the child would be nested too deep, or if its
// sentinel is already one of its ancestors.
func (r *liveRun) checkNesting(def *sentinels.Definition) error {
	lineage := append(append([]sentinels.ID(nil), r.begin.Ancestry...), r.begin.Sentinel)
	if len(lineage) >= r.ex.svc.Limits.Depth {
		return failure.New(abi.Limit, "nesting depth: %q would be %d sentinels deep, the limit is %d", def.ID, len(lineage)+1, r.ex.svc.Limits.Depth)
	}
	for _, id := range lineage {
		if id == def.ID {
			return failure.New(abi.Limit, "sentinel %q would start itself: %s", def.ID, fmt.Sprint(append(lineage, def.ID)))
		}
	}
	return nil
}
