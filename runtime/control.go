package runtime

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Start starts a run of def and returns its id once the first record is queued for its
// commit, or with [StartOptions].Durable once that is durable; [Runtime.Wait] returns its result.
func (rt *Runtime) Start(ctx context.Context, def *sentinels.Definition, opt StartOptions) (sentinels.RunID, error) {
	return rt.exec.Start(ctx, def, opt)
}

// Wait returns a run's result once its end is durable. A run that ended before
// returns at once. For a run that no process executes the error is conflict.
func (rt *Runtime) Wait(ctx context.Context, id sentinels.RunID) (Result, error) {
	return rt.exec.Await(ctx, id)
}

// WaitFrom is [Runtime.Wait] for a step of the run from. Waiting for that run itself, for a
// run above it, or in a circle is the error conflict.
func (rt *Runtime) WaitFrom(ctx context.Context, from, id sentinels.RunID) (Result, error) {
	return rt.exec.AwaitFrom(ctx, from, id)
}

// StopAbandoned stops a run that was started with [StartOptions.Child] by a step of the run from, if
// ctx, the context of the step's call, has ended. At the end of the process the run goes on like
// every other one.
func (rt *Runtime) StopAbandoned(ctx context.Context, from, id sentinels.RunID) {
	rt.exec.StopAbandoned(ctx, from, id)
}

// CallStep executes one step as a run of its own, waits for it, and returns the output of
// the step or its error.
//
// Within the work of a host call of a run, a command or a turn of a model that has the
// context of that work, the new run is a child of that run: it spends from its budget,
// counts for its limits of children and nesting, and stops with it. The work gives up its
// execution slot while it waits. A call that a crash interrupts is made again and finds the
// run that it had started, so it is never in doubt; a new attempt of the step starts another
// run.
//
// If ctx ends before the run does, the run is stopped. After the end of the process the run
// is resumed like every other one.
func (rt *Runtime) CallStep(ctx context.Context, c StepCall) (json.RawMessage, error) {
	return rt.exec.CallStep(ctx, c)
}

// CheckCall returns why [Runtime.CallStep] would refuse a call before it starts a run: an
// unknown step type, or fields that it does not have.
func (rt *Runtime) CheckCall(c StepCall) error { return rt.exec.CheckCall(c) }

// Variables returns the variables that a run has set so far, without secrets: of a run
// that executes, as its steps see them now.
func (rt *Runtime) Variables(id sentinels.RunID) (map[string]json.RawMessage, error) {
	return rt.exec.Variables(id)
}

// Status returns the summary of a run, or not_found.
func (rt *Runtime) Status(id sentinels.RunID) (RunInfo, error) {
	return rt.exec.Status(id)
}

// Stop ends a run and all its descendants. It returns when their steps, host
// calls and processes have ended and that is durable. Stopping a run that is
// over is the error conflict.
func (rt *Runtime) Stop(ctx context.Context, id sentinels.RunID) error {
	return rt.StopWith(ctx, id, StopOptions{})
}

// StopWith is [Runtime.Stop] with options: the summary and the journal of the run have who stopped it.
func (rt *Runtime) StopWith(ctx context.Context, id sentinels.RunID, opt StopOptions) error {
	return rt.exec.StopRun(ctx, id, opt)
}

// Resume lets a paused run continue, or takes over a run that no process executes,
// with every descendant that is not over. A run that was paused at a limit needs
// a limit extension, a quarantined one a comment: it lifts the quarantine, and
// the journal has who did that and why.
func (rt *Runtime) Resume(ctx context.Context, id sentinels.RunID, opt ResumeOptions) error {
	return rt.exec.Resume(ctx, id, opt)
}

// Decide makes a pending decision of a run. It returns when the decision is durable. For
// a run that no process executes, or that was taken over and has not asked again,
// the decision waits in its journal.
func (rt *Runtime) Decide(ctx context.Context, id sentinels.RunID, d Decision) error {
	return rt.exec.Decide(ctx, id, d)
}

// Drain prepares the runtime for Close: no step starts from now on, and those
// under way may end until ctx ends. It returns nil when nothing executes any more, so
// that Close leaves nothing in doubt; else an error with the number of runs that still
// execute. It does not wait for runs that wait.
//
// A run that is started meanwhile is accepted durably and executed by the
// next process that resumes it. There is no way back from draining but Close.
func (rt *Runtime) Drain(ctx context.Context) error {
	return rt.exec.Drain(ctx)
}

// Chain returns how many runs an event has passed through that the given run
// emits now, itself included, and the sentinels they are of, in order; 0 for a
// run that this process does not execute.
func (rt *Runtime) Chain(id sentinels.RunID) (hops int, path []string) {
	return rt.exec.Chain(id)
}

// Fork starts a run that is made from another one: the same workspace, event
// and inputs, a budget and limits of its own, and with Iteration or From the
// variables as they stood there. Steps of that iteration which stand before From are
// not executed again: the trace shows them as reused. Effects of the steps
// behind it are made again, under keys of the new run.
//
// The other run may continue meanwhile: what its journal has by now counts. Iterations
// whose records went with retention are the error not_found, which names what is
// kept. The new run does not need the other one's records any more.
func (rt *Runtime) Fork(ctx context.Context, id sentinels.RunID, opt ForkOptions) (sentinels.RunID, error) {
	return rt.exec.Fork(ctx, id, opt)
}

// Turn makes a model turn for a command that a step of the run called, on the
// run's budget. For an id that no live run has, no budget counts.
func (rt *Runtime) Turn(ctx context.Context, id sentinels.RunID, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	return rt.exec.Turn(ctx, id, turn, delta)
}

// Pause pauses a run at its next step boundary: steps that are executing end and are
// recorded, and no step starts. The active time of the run stands still. Pausing a
// paused run has no effect.
func (rt *Runtime) Pause(ctx context.Context, id sentinels.RunID, by string) error {
	return rt.exec.Pause(ctx, id, by)
}

// PauseWith is [Runtime.Pause] with options. It returns when the pauses are
// durable. With Tree a run that is paused already stays paused as it is: a later
// resume of the tree leaves it so. Over makes it one of this pause.
func (rt *Runtime) PauseWith(ctx context.Context, id sentinels.RunID, opt PauseOptions) error {
	return rt.exec.PauseWith(ctx, id, opt)
}

// ResumeAll takes over every run that is not over and that this process does
// not execute yet, parents before their children. Paused runs stay paused, and
// waiting ones wait. A run that cannot be restored keeps out only the runs
// below it: without their parent they would spend beyond its budget.
//
// Of opt only OnInterrupt and By count. An error means that the runs cannot be
// listed, or that ctx ended; what was done until then is in the Recovery.
func (rt *Runtime) ResumeAll(ctx context.Context, opt ResumeOptions) (Recovery, error) {
	return rt.exec.ResumeAll(ctx, opt)
}

// EditRun gives one run a definition of its own, which it follows from its next
// iteration on in place of the stored sentinel; the current iteration is
// untouched. fn gets what the next iteration would use and returns another
// definition, which is checked whole. fn may be called more than once and must
// not change what it is given.
//
// The edit is in the run's journal when EditRun returns, whether this process
// executes the run or none does. For a run that has ended the error is conflict.
func (rt *Runtime) EditRun(ctx context.Context, id sentinels.RunID, opt EditRunOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (RunEdit, error) {
	return rt.exec.EditRun(ctx, id, opt, fn)
}

// RunDefinition returns the definition that a run's next iteration uses, for a
// run that is over the one it used last.
func (rt *Runtime) RunDefinition(id sentinels.RunID) (RunVersion, error) {
	return rt.exec.RunDefinition(id)
}

// AgentChanges returns what agents and models have changed in the definitions of a run, of those above it and of others of
// their tree, by forks, by edits of runs and by revisions that an iteration used, also where they took it back, as unified differences
// without secrets; "" for nothing. Forks and edits of one run are at most 64 KiB: one by which they would exceed that is refused.
func (rt *Runtime) AgentChanges(id sentinels.RunID) (string, error) { return rt.exec.AgentChanges(id) }

// GivenInputs returns the inputs of a run, of those above it and of others of their tree that an agent or a model gave, its own
// first, those of a run in the order of their names and then its events of agents and models: a person who decides about the
// run decides about what those above it do next. With more than 64 KiB of names and values in the run
// or one above it, no approval is asked for: the step fails with limit. Of the events that steps have waited for, that much is kept of each run, the newest.
func (rt *Runtime) GivenInputs(id sentinels.RunID) ([]GivenInput, error) {
	return rt.exec.GivenInputs(id)
}
