package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

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
	if child.Inherit != nil {
		opt.identity, opt.folder = child.Identity, child.Workspace
		if err := r.inherit(&opt, def, child.Inherit.(scope)); err != nil {
			return "", err
		}
	}
	if child.Drafted && r.Within() == nil {
		opt.Within = append([]string{"*"}, r.NamedCommands()...)
	}
	id, err := r.ex.startRun(ctx, def, opt)
	if errors.Is(err, ErrClosed) {
		err = step.ErrShutdown
	}
	return id, err
}

// StopRun implements [step.Children].
func (r *liveRun) StopRun(id sentinels.RunID, cause error) { r.ex.stopTree(id, cause) }

// NamedCommands implements [step.State]: it returns the commands that the definition of the current iteration names in
// steps and lists of tools. A definition that is the value of a variable, and may come from
// a model, executes code by no others.
func (r *liveRun) NamedCommands() []string {
	r.mu.Lock()
	def, types := r.def, r.types
	r.mu.Unlock()
	return sentinels.CommandsIn(def, types)
}

// inherit sets what an inline child begins with: a copy of the variables that the step
// sees, and the parent's inputs as $inputs. Inputs that the child is given take precedence;
// those that it declares and is not given have the values of the variables.
func (r *liveRun) inherit(opt *startOptions, def *sentinels.Definition, from scope) error {
	variables := from.values()
	given := opt.Inputs
	inputs := map[string]json.RawMessage{}
	raw, err := r.ex.svc.Values.Load(r.begin.Inputs)
	if err != nil {
		return err
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &inputs); err != nil {
			return err
		}
	}
	for name := range def.Inputs {
		if v, ok := variables[name]; ok {
			inputs[name] = v.Content()
		}
	}
	maps.Copy(inputs, given)
	opt.own = map[string]bool{}
	for name := range given {
		opt.own[name] = true
	}
	for name := range def.Inputs {
		if _, inherited := variables[name]; !inherited {
			opt.own[name] = true // its default
		}
	}
	if opt.inherited, err = r.ex.svc.Values.KeepScope(variables); err != nil {
		return err
	}
	opt.Inputs, opt.lenient = inputs, true
	return nil
}

// checkNesting returns an error if the child would be nested too deep, or if its
// sentinel is already one of its ancestors.
func (r *liveRun) checkNesting(child sentinels.ID) error {
	lineage := append(append([]sentinels.ID(nil), r.begin.Ancestry...), r.begin.Sentinel)
	if len(lineage) >= r.ex.svc.Limits.Depth {
		return failure.New(abi.Limit, "nesting depth: %q would be %d sentinels deep, the limit is %d", child, len(lineage)+1, r.ex.svc.Limits.Depth)
	}
	for _, id := range lineage {
		if id == child {
			return failure.New(abi.Limit, "sentinel %q would start itself: %s", child, fmt.Sprint(append(lineage, child)))
		}
	}
	return nil
}
