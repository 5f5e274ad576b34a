package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
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

// A childQueue is the children of a run, and those that its ended children left behind, as
// far as they count for its limit. Its fields are guarded by ex.mu.
type childQueue struct {
	active  int        // children that have a place
	waiting []*liveRun // children that wait for one, in the order of their starts
}

// maxWaitingChildren bounds the memory of the runs that wait behind one run.
const maxWaitingChildren = 10_000

// checkWaiting returns an error if too many children wait for a place already. The caller
// holds ex.mu.
func (ex *Executor) checkWaiting(r *liveRun) error {
	up := ex.activeAbove(r)
	if up == nil || len(up.children.waiting) < maxWaitingChildren {
		return nil
	}
	return &abi.Error{
		Code:    abi.Limit,
		Message: fmt.Sprintf("children: %d child runs wait until run %s has fewer than %d active ones; no more may wait", maxWaitingChildren, up.id, ex.svc.Limits.Children),
		Hint:    "wait for some of them before more are started",
	}
}

// takePlace gives a child its place among the active children of the run above it, or puts it
// into the queue of that run. The steps of the child begin when it has its place. The caller
// holds ex.mu.
func (ex *Executor) takePlace(r *liveRun) {
	up := ex.activeAbove(r)
	if up == nil {
		ex.takeTurn(r)
		return
	}
	ex.enqueueChild(up, r)
	ex.fillPlaces(up)
}

// restorePlace is takePlace for a restored run. One that had begun keeps its place, beyond the
// limit, too. Any other waits until [Executor.fillRestored], when all of them are known.
func (ex *Executor) restorePlace(r *liveRun) {
	up := ex.activeAbove(r)
	switch {
	case up == nil && r.waitsForTurn() && r.folded.Iteration == 0:
		ex.enqueueTurn(r)
		r.showQueued()
	case up == nil:
		close(r.place)
	case r.folded.Iteration > 0:
		up.children.active++
		r.counted = true
		close(r.place)
	default:
		ex.enqueueChild(up, r)
		r.showQueued()
	}
}

// enqueueChild lets r wait for its place.
func (ex *Executor) enqueueChild(up, r *liveRun) {
	up.children.waiting = append(up.children.waiting, r)
	ex.queueRun(r, fmt.Sprintf("run %s has %d active child runs, its limit", up.id, ex.svc.Limits.Children))
}

// queueRun has a run wait for its place, for a reason that its status shows. Its active time stands still
// meanwhile. The caller holds ex.mu.
func (ex *Executor) queueRun(r *liveRun, reason string) {
	r.queue = run.QueueWait{Reason: reason, Since: time.Now().UTC()}
	r.clock.Hold()
	ex.block(r, 1)
}

// giveRunPlace gives a run that waited its place. The caller holds ex.mu.
func (ex *Executor) giveRunPlace(r *liveRun) {
	ex.block(r, -1)
	r.clock.Release()
	close(r.place)
}

// fillRestored gives the places that restored runs leave free to those that wait.
func (ex *Executor) fillRestored(runs []restoredRun) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	for _, x := range runs {
		ex.fillTurns(x.run.begin.Sentinel)
		if up := ex.activeAbove(x.run); up != nil && len(up.children.waiting) > 0 {
			slices.SortFunc(up.children.waiting, func(a, b *liveRun) int { return strings.Compare(string(a.id), string(b.id)) })
			ex.fillPlaces(up)
		}
	}
}

// fillPlaces gives the free places of up to the children that have waited longest. The caller
// holds ex.mu.
func (ex *Executor) fillPlaces(up *liveRun) {
	for len(up.children.waiting) > 0 && up.children.active < ex.svc.Limits.Children {
		r := up.children.waiting[0]
		up.children.waiting = up.children.waiting[1:]
		up.children.active++
		r.counted = true
		ex.giveRunPlace(r)
	}
}

// hasPlace reports whether the run may execute, or has executed.
func (r *liveRun) hasPlace() bool {
	select {
	case <-r.place:
		return true
	default:
		return false
	}
}

// showQueued shows that r waits for its place, unless it has it already: the answer to its start has that. The caller
// holds ex.mu, and r is not executed yet.
func (r *liveRun) showQueued() {
	if !r.hasPlace() {
		r.leaveQueue = r.ShowQueue(&r.queue)
	}
}

// activeStatus returns the status of a run that is neither paused nor asks a person. The caller holds r.mu.
func (r *liveRun) activeStatus() sentinels.Status {
	if slices.Contains(r.queued, &r.queue) {
		return sentinels.StatusQueued
	}
	return sentinels.StatusRunning
}

// queuedReason returns what a run with this status waits behind, "" unless it is queued.
func (r *liveRun) queuedReason(status sentinels.Status) string {
	if status != sentinels.StatusQueued {
		return ""
	}
	return r.queue.Reason
}

// endQueued records that r executes from now on. One that was paused while it was queued stays paused.
func (r *liveRun) endQueued() {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.leaveQueue()
	if r.status() == sentinels.StatusQueued {
		r.updateStatus(nil, false)
	}
}

// awaitPlace returns when the run may execute: when it has its place among the children of
// the run above it, or its turn among those of its sentinel, or the run ends.
func (r *liveRun) awaitPlace() error {
	if r.leaveQueue == nil {
		return nil
	}
	if r.begin.Overlap == sentinels.OverlapRestart && !r.hasPlace() {
		if err := r.stopBefore(); err != nil {
			return err
		}
	}
	select {
	case <-r.place:
		r.queuedFor = time.Since(r.queue.Since)
		r.endQueued()
		return nil
	case <-r.ctx.Done():
		r.giveUpPlace()
		return context.Cause(r.ctx)
	}
}

// giveUpPlace takes r out of the queue that it waits in, if it does. Its onFailure and finally wait for no place, and
// their time limits are measured with its clock.
func (r *liveRun) giveUpPlace() {
	if r.leaveQueue == nil {
		return
	}
	r.ex.mu.Lock()
	if !r.hasPlace() {
		r.ex.dropTurn(r)
		if up := r.ex.activeAbove(r); up != nil {
			up.children.waiting = slices.DeleteFunc(up.children.waiting, func(other *liveRun) bool { return other == r })
		}
		r.clock.Release()
	}
	r.ex.mu.Unlock()
	r.leaveQueue()
}

// removeLocked removes r, which has ended, from the active runs. Its children, with those
// that wait, count for the nearest active run above it from then on. The caller holds ex.mu.
func (ex *Executor) removeLocked(r *liveRun) {
	ex.leaveShare(r)
	delete(ex.runs, r.id)
	defer ex.beginChildren(r.share)
	ex.dropTurn(r)
	ex.fillTurns(r.begin.Sentinel)
	up := ex.activeAbove(r)
	if up == nil { // nothing above is left that has a limit
		for _, child := range r.children.waiting {
			ex.giveRunPlace(child)
		}
		r.children.waiting = nil
		return
	}
	if r.counted {
		up.children.active--
	} else {
		up.children.waiting = slices.DeleteFunc(up.children.waiting, func(other *liveRun) bool { return other == r })
	}
	up.children.active += r.children.active
	up.children.waiting = append(up.children.waiting, r.children.waiting...)
	r.children.waiting = nil
	ex.fillPlaces(up)
}

// StartChild implements [step.Children].
func (r *liveRun) StartChild(ctx context.Context, def *sentinels.Definition, child step.ChildOptions) (sentinels.RunID, error) {
	opt := startOptions{StartOptions: run.StartOptions{Key: child.Key, Workspace: r.begin.Workspace, Inputs: child.Inputs, Revision: child.Revision}, parent: r}
	if child.Inherit != nil {
		opt.identity, opt.folder = child.Identity, child.Workspace
		if err := r.inherit(&opt, def, child.Inherit.(scope)); err != nil {
			return "", err
		}
		opt.OnInterrupt = r.Definition().Safety.OnInterrupt
		outer := r.Definition().Environment()
		if cmp.Or(child.Workspace, def.Workspace) != "" { // files of the parent are relative to its workspace
			outer = outer.In(r.begin.Workspace)
		}
		if child.Drafted || r.bounded() {
			outer = outer.Plain()
		}
		def = def.Inside(outer)
	}
	if child.Drafted && !r.bounded() {
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

// NamedCommands implements [step.State]: it returns the commands that the definition of the
// current iteration names in steps and lists of tools, and entries for the types of its steps. A
// definition that is the value of a variable, and may come from a model, executes code by no other
// commands, and uses what plugins are granted by no other types.
func (r *liveRun) NamedCommands() []string {
	r.mu.Lock()
	def, types := r.def, r.types
	r.mu.Unlock()
	names := sentinels.CommandsIn(def, types)
	def.EachStep(func(_ string, s *sentinels.Step) {
		if entry := external.TypeEntry(s.Type); !slices.Contains(names, entry) {
			names = append(names, entry)
		}
	})
	return names
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
// sentinel is already one of its ancestors. A command may start that one again: it gives it other
// inputs.
func (r *liveRun) checkNesting(child sentinels.ID, commanded bool) error {
	lineage := append(append([]sentinels.ID(nil), r.begin.Ancestry...), r.begin.Sentinel)
	if len(lineage) >= r.ex.svc.Limits.Depth {
		return failure.New(abi.Limit, "nesting depth: %q would be %d sentinels deep, the limit is %d", child, len(lineage)+1, r.ex.svc.Limits.Depth)
	}
	for _, id := range lineage {
		if id == child && !commanded {
			return failure.New(abi.Limit, "sentinel %q would start itself: %s", child, fmt.Sprint(append(lineage, child)))
		}
	}
	return nil
}
