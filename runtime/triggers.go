package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/redact"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// What callers and observers see of triggers, see package trigger.
type (
	TriggerInfo     = trigger.Info
	TriggerPause    = trigger.Pause
	TriggerRequests = trigger.Requests
	TriggerCounts   = trigger.Counts
	TriggerFired    = trigger.Fired
	TriggerSkips    = trigger.Skips
)

// openTriggers creates the dispatcher of triggers, with nothing armed.
func (rt *Runtime) openTriggers(now func() time.Time) {
	rt.dispatch = dispatch.New(dispatch.Options{
		Store: rt.db, Runs: triggerRuns{rt}, Definitions: triggerDefinitions{rt}, Events: triggerEvents{rt},
		Kinds: rt.opt.Triggers, Secret: rt.opt.Secret, Redact: redact.Redactor(rt.opt.Redact), Filter: rt.filter, ChainProblem: rt.chainProblem,
		Workspace: func(r dispatch.Revision, def *sentinels.Definition) (string, error) {
			dir, err := execution.Workspace(def, WorkspaceBase(def, r.Origin, rt.opt.Workspace))
			if err != nil || def.Workspace == "" {
				return dir, err
			}
			if r.Within != nil { // that a file was changed says something about it
				if err := execution.CheckBoundWorkspace(dir, rt.opt.Workspace); err != nil {
					return "", err
				}
				if rt.opt.CheckWorkspace != nil {
					if err := rt.opt.CheckWorkspace(dir, r.Within); err != nil {
						return "", err
					}
				}
			}
			// A trigger on a folder that is missing would never fire.
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return "", fmt.Errorf("workspace %q: no folder %q: create it, then save the definition again or restart", def.Workspace, dir)
			}
			return dir, nil
		},
		Now: now, NewRunID: execution.NewRunID,
		Alive: rt.alive, Writable: rt.writable,
		Await:  func(ctx context.Context, t *store.Ticket) error { return rt.await(ctx, t) },
		Settle: func(ctx context.Context, t *store.Ticket) error { return rt.settled(ctx, t) },
		Announce: func(id sentinels.ID, word, key string, data any, b store.Batch) *store.Ticket {
			return rt.exec.Announce(id, word, key, data, b)
		},
		AgentStarts: rt.opt.Limits.AgentStarts, Observe: rt.opt.Observer.Trigger, Log: rt.opt.Logger,
	})
}

// Arm arms the triggers of all stored definitions and returns when they are armed.
// They follow the definitions until Disarm or Close. Firings that were queued or
// debounced when the process ended continue. Runs that have not ended count as
// active, so resume them before.
//
// A trigger that cannot be armed is shown by [Runtime.Triggers]; it is not an error.
// While the store takes no commits triggers are armed too: their first records are
// held and committed before the first firing. Arming again reads definitions that
// could not be read before, as after a plugin was loaded.
func (rt *Runtime) Arm(ctx context.Context) error { return rt.dispatch.Arm(ctx) }

// Disarm stops all triggers. When it returns nothing fires and nothing that waited
// starts; active runs continue. What waits is kept for the next Arm.
func (rt *Runtime) Disarm() { rt.dispatch.Disarm() }

// Triggers returns the triggers of a sentinel in the order of its definition, or
// of all sentinels if id is empty. It also works while nothing is armed.
func (rt *Runtime) Triggers(id sentinels.ID) ([]TriggerInfo, error) {
	return rt.UpcomingTriggers(id, 0)
}

// UpcomingTriggers is [Runtime.Triggers] with the next planned times of each schedule, at
// most n.
func (rt *Runtime) UpcomingTriggers(id sentinels.ID, n int) ([]TriggerInfo, error) {
	if id != "" {
		if _, err := rt.Definition(id); err != nil {
			return nil, err
		}
	}
	return rt.dispatch.Triggers(id, n)
}

// PauseTriggers pauses the triggers of a sentinel durably; a pause that they have is replaced. While
// they are paused nothing fires and nothing that waits starts. Kinds that can do so
// report afterwards what happened meanwhile, schedules as their catch-up says.
func (rt *Runtime) PauseTriggers(ctx context.Context, id sentinels.ID, p TriggerPause) error {
	if err := rt.changesTriggers(id); err != nil {
		return err
	}
	return rt.dispatch.Pause(ctx, id, p)
}

// ResumeTriggers ends the pause of the triggers of a sentinel, durably. over is as in [TriggerPause]; nil for no condition.
func (rt *Runtime) ResumeTriggers(ctx context.Context, id sentinels.ID, over func(by string) error) error {
	if err := rt.changesTriggers(id); err != nil {
		return err
	}
	return rt.dispatch.Resume(ctx, id, over)
}

// PauseOfTriggers returns the pause of the triggers of a sentinel, also of one whose newest revision has none.
func (rt *Runtime) PauseOfTriggers(id sentinels.ID) (p TriggerPause, paused bool, err error) {
	return rt.dispatch.PauseOf(id)
}

// changesTriggers returns why the triggers of a sentinel cannot be paused or resumed.
func (rt *Runtime) changesTriggers(id sentinels.ID) error {
	if err := rt.writable(); err != nil {
		return err
	}
	_, err := rt.Definition(id)
	return err
}

// Receive passes a request from outside to a trigger of a sentinel and returns the
// outcome of each firing that the request causes, once they are durable. trigger is
// its name or its index; empty means the only one that accepts requests.
//
// Errors are those of the trigger: denied for a wrong secret; not_found if no
// trigger accepts requests; unavailable while no triggers are armed. Only a request
// that its trigger accepts gets others: conflict while the triggers are paused,
// bad_fields if several triggers accept requests and none is named. Outcomes from
// before an error are returned with it.
func (rt *Runtime) Receive(ctx context.Context, id sentinels.ID, trigger string, req triggers.Request) ([]triggers.Admission, error) {
	return rt.dispatch.Receive(ctx, id, trigger, req)
}

// filter evaluates the filter of a trigger of a sentinel for an event.
func (rt *Runtime) filter(ctx context.Context, id sentinels.ID, condition string, e *sentinels.Event) (bool, error) {
	stored, err := rt.Definition(id)
	if err != nil {
		return false, err
	}
	v, err := rt.conditions.Eval(ctx, execution.EmitsFor(stored), condition, func(name string) (json.RawMessage, bool) {
		if name != "event" || e == nil {
			return nil, false
		}
		return eventlog.Variable(e), true
	})
	if err != nil {
		return false, failure.From(err, abi.Plugin)
	}
	return v.Truthy, nil
}

// chainProblem returns why an event may not start another run of a sentinel, "" if
// it may.
func (rt *Runtime) chainProblem(id sentinels.ID, e *sentinels.Event) string {
	if e.Hops < rt.opt.Limits.Hops {
		return ""
	}
	return eventlog.ChainOf(e).Through(id).Refuse(e.Name, rt.opt.Limits.Hops).Message
}

// WorkspaceBase returns the folder that the workspace of a definition is relative to: that
// of its file for a relative one, so that it is the same for each way to start it, otherwise dir.
// origin is the file of the stored definition, "" for none.
func WorkspaceBase(def *sentinels.Definition, origin, dir string) string {
	if origin != "" && def.Workspace != "" && !filepath.IsAbs(def.Workspace) {
		return filepath.Dir(origin)
	}
	return dir
}

// triggerRuns are the runs as triggers need them.
type triggerRuns struct{ rt *Runtime }

var _ dispatch.Runs = triggerRuns{}

func (t triggerRuns) Start(s dispatch.Start) (sentinels.RunID, *store.Ticket, error) {
	return t.rt.exec.StartFired(t.rt.ctx, s.Definition, execution.Firing{
		StartOptions: StartOptions{Event: s.Event, Workspace: WorkspaceBase(s.Definition, s.Origin, t.rt.opt.Workspace), Revision: s.Revision, Key: s.Key}, ID: s.ID, Trigger: s.Trigger, Puts: s.Puts,
	})
}

// Stop also waits for a run that is about to end by itself, which cannot be stopped.
func (t triggerRuns) Stop(ctx context.Context, id sentinels.RunID) error {
	err := t.rt.Stop(ctx, id)
	if code := abi.CodeOf(err); err == nil || code != abi.Conflict && code != abi.NotFound {
		return err
	}
	if !t.rt.exec.Live(id) {
		return err
	}
	_, err = t.rt.Wait(ctx, id)
	return err
}

func (t triggerRuns) Undecided(id sentinels.RunID) string { return t.rt.exec.Undecided(id) }

func (t triggerRuns) EndUndecided(ctx context.Context, id sentinels.RunID) (bool, error) {
	return t.rt.exec.EndUndecided(ctx, id)
}

// maxExpectedRuns bounds the runs of one sentinel that are looked at for one that was expected.
const maxExpectedRuns = 1000

func (t triggerRuns) Ran(id sentinels.ID, from, to time.Time, completed bool) (bool, sentinels.RunID, sentinels.Status, error) {
	infos, err := t.rt.Runs(RunFilter{Sentinel: id, OfStored: true, Since: from, Limit: maxExpectedRuns})
	var newest RunInfo
	for _, i := range infos {
		if i.Parent != "" || i.CreatedAt.After(to) {
			continue
		}
		if !completed || i.Status == sentinels.StatusCompleted && !i.EndedAt.After(to) {
			return true, i.ID, i.Status, err
		}
		if newest.ID == "" {
			newest = i
		}
	}
	return false, newest.ID, newest.Status, err
}

func (t triggerRuns) Unfinished() (list []sentinels.RunID, err error) {
	err = t.rt.index.Unfinished(func(run sentinels.RunID) bool {
		list = append(list, run)
		return true
	})
	return list, err
}

func (t triggerRuns) Run(id sentinels.RunID) (dispatch.Run, error) {
	info, err := t.rt.Status(id)
	r := dispatch.Run{Sentinel: execution.OverlapID(info), Child: info.Parent != "", Status: info.Status}
	r.Chain.Hops, r.Chain.Path = t.rt.exec.Chain(id)
	return r, err
}

// triggerDefinitions are the definitions as triggers need them.
type triggerDefinitions struct{ rt *Runtime }

var _ dispatch.Definitions = triggerDefinitions{}

func (t triggerDefinitions) Newest(id sentinels.ID) (r dispatch.Revision, found bool, err error) {
	head, err := t.rt.definitions.Head(id)
	if err != nil || head.Revision == 0 || head.Deleted {
		return r, false, err
	}
	return t.revision(head), true, nil
}

func (t triggerDefinitions) Stored(id sentinels.ID) bool { return t.rt.definitions.Stored(id) }

func (t triggerDefinitions) All() ([]dispatch.Revision, error) {
	stored, err := t.rt.Definitions()
	list := make([]dispatch.Revision, len(stored))
	for i, s := range stored {
		list[i] = t.revision(s)
	}
	return list, err
}

func (t triggerDefinitions) revision(s Stored) dispatch.Revision {
	return dispatch.Revision{ID: s.ID, Number: s.Revision, Origin: s.Origin, Within: s.Within, By: execution.EmitsFor(s), Chain: eventlog.Chain{Hops: s.Hops, Path: s.Path}, Decode: func() (*sentinels.Definition, error) { return t.rt.Decoded(s) }}
}

// triggerEvents is the event log as triggers need it.
type triggerEvents struct{ rt *Runtime }

var _ dispatch.EventLog = triggerEvents{}

func (t triggerEvents) Position(pattern string) uint64 { return t.rt.logOf(pattern).End() }
func (t triggerEvents) Quarter(pattern string) uint64  { return t.rt.logOf(pattern).Quarter() }

func (t triggerEvents) Await(ctx context.Context, pattern string, after uint64) (dispatch.Sighting, error) {
	m, err := t.rt.logOf(pattern).Wait(ctx, pattern, after)
	return dispatch.Sighting{Event: m.Event, Position: m.Offset, Lost: m.Lost, Through: m.Through}, err
}
