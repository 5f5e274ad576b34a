package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/retention"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// resumeOptions are the options of a takeover.
type resumeOptions struct {
	run.ResumeOptions
	// from is the workspace of the run that moves to ResumeOptions.Workspace. A descendant in it
	// moves as well.
	from        string
	trees       pausedTrees                                         // of the run that is resumed
	below       bool                                                // the run is a descendant of the one that is resumed
	all         bool                                                // all runs are taken over: paused runs stay paused
	interrupted map[sentinels.RunID][]external.InterruptedExecution // interrupted processes by run; nil if each run is to be asked for its own
}

// A takeover takes over runs that another process began. All of them are restored
// before any continues, because the number of executing steps of all runs decides how a
// crash is counted.
type takeover struct {
	ex  *Executor
	log *recoveryLog // nil if no report is wanted

	mu       sync.Mutex
	restored []restoredRun
}

// A restoredRun is a run that is ready to continue.
type restoredRun struct {
	run    *liveRun
	info   run.Info // summary that the last process wrote
	parent *liveRun
	opt    resumeOptions
}

// takeOver takes over a run and its descendants.
func (ex *Executor) takeOver(ctx context.Context, info run.Info, parent *liveRun, opt resumeOptions) error {
	t := &takeover{ex: ex}
	if err := t.restore(ctx, info, parent, opt); err != nil {
		return err
	}
	t.begin()
	return nil
}

// restore restores a run and its unfinished descendants. Parents come first, so that a
// child finds its parent's budget. Descendants that cannot be restored are added to the
// log; the error is that of the run itself.
func (t *takeover) restore(ctx context.Context, info run.Info, parent *liveRun, opt resumeOptions) error {
	ex := t.ex
	unfinished, over, err := ex.descendants(info.ID)
	if err != nil {
		return fmt.Errorf("resume run %s: %w", info.ID, err)
	}
	if opt.Workspace != "" {
		if opt.from == "" {
			opt.from = info.Workspace
		}
		if rel, err := filepath.Rel(opt.from, info.Workspace); err == nil && filepath.IsLocal(rel) {
			info.Workspace = filepath.Join(opt.Workspace, rel)
		}
	}
	r, err := ex.restoreAndAdopt(ctx, info, parent, opt)
	if err != nil {
		return err
	}
	r.mu.Lock() // a decision or an edit may change it already
	info = r.info
	r.mu.Unlock()
	if opt.Extension != (run.LimitExtension{}) {
		r.extendLimits(opt.ResumeOptions)
	}
	// Charge earlier usage before descendants can spend more.
	r.budget.Charge(info.ID, r.folded.Usage)
	for _, c := range over {
		r.budget.Charge(info.ID, c)
	}
	t.mu.Lock()
	t.restored = append(t.restored, restoredRun{r, info, parent, opt})
	t.mu.Unlock()
	for _, c := range unfinished {
		below := resumeOptions{ResumeOptions: run.ResumeOptions{OnInterrupt: opt.OnInterrupt, By: opt.By, Tree: opt.Tree, Over: opt.Over, Workspace: opt.Workspace}, from: opt.from, trees: opt.trees, below: true, all: opt.all, interrupted: opt.interrupted}
		if err := t.restore(ctx, c, r, below); err != nil {
			t.log.addFailed(ex, c, err)
			ex.svc.Log.Error("child run cannot continue", "run", c.ID, "parent", info.ID, "error", err)
		}
	}
	return nil
}

// begin counts the crash, if there was one, and continues all restored runs.
func (t *takeover) begin() {
	executing := 0
	for _, x := range t.restored {
		executing += len(x.run.stepsAtCrash)
	}
	suspects := 0
	for _, x := range t.restored {
		x.run.countCrash(executing == 1)
		suspects += x.run.suspects()
	}
	if suspects > 1 {
		t.ex.svc.Turns.Gather()
	}
	forEach(t.restored, func(x restoredRun) {
		t.log.addResumed(x.run, x.info)
		x.run.resumeRestored(x.info, x.parent, x.opt)
	})
	t.ex.fillRestored(t.restored)
}

// resumeRestored starts the main goroutine of a restored run. It does not wait for the
// record of the resume, so that the records of ten thousand runs are a few commits.
func (r *liveRun) resumeRestored(info run.Info, parent *liveRun, opt resumeOptions) {
	r.mu.Lock()
	body := journal.StatusBody{Status: r.activeStatus(), Resumed: true, By: opt.By}
	r.announced, r.recovered = info.Status, opt.all
	r.mu.Unlock()
	if info.Status == sentinels.StatusPaused && opt.startsPaused(info, parent) {
		r.clock.Pause()
		r.gate.Shut()
		body.Status, body.Reason, body.Limit, body.With = info.Status, info.Reason, info.Limit, info.PausedWith
	}
	r.snap.Lock()
	r.setStatus(body, nil, nil)
	r.snap.Unlock()
	go r.main()
}

// startsPaused reports whether a paused run stays paused when it is taken over. That is
// the case when all runs are taken over, and for a descendant of the run that is
// resumed, unless it was paused with the tree of that run and is resumed with it, and
// opt.Over permits that.
func (opt resumeOptions) startsPaused(info run.Info, parent *liveRun) bool {
	return opt.all || parent != nil && (!opt.Tree || !opt.trees.have(info)) || opt.below && overrules(opt.ResumeOptions, info) != nil
}

// restoreAndAdopt restores a run and adds it to the active runs. No other caller
// appends to its journal meanwhile, see [Executor.appendAfter].
func (ex *Executor) restoreAndAdopt(ctx context.Context, info run.Info, parent *liveRun, opt resumeOptions) (*liveRun, error) {
	ex.takeoverMu.RLock()
	defer ex.takeoverMu.RUnlock()
	if !opt.all { // it may have been paused since the caller looked
		now, err := ex.Status(info.ID)
		if err != nil {
			return nil, err
		}
		if err := overrules(opt.ResumeOptions, now); err != nil && !opt.below {
			return nil, err
		}
		now.Workspace = info.Workspace
		info = now
	}
	r, err := ex.restore(ctx, info, parent, opt)
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w", info.ID, err)
	}
	text, err := json.Marshal(r.current().def)
	if err != nil {
		return nil, err
	}
	r.expect(text)
	if err := ex.adopt(r); err != nil {
		r.expect(nil)
		r.setPlugins(nil)
		r.cancel(err)
		return nil, err
	}
	return r, nil
}

// descendants returns the nearest unfinished descendants of a run: its unfinished
// children, and those of its finished descendants. over is the usage of the finished
// ones.
func (ex *Executor) descendants(id sentinels.RunID) (unfinished []run.Info, over []sentinels.Usage, err error) {
	children, err := ex.opt.Index.List(run.Filter{Parent: id})
	if err != nil {
		return nil, nil, err
	}
	gone, err := ex.SpentBelow(id)
	if err != nil {
		return nil, nil, err
	}
	if gone != (sentinels.Usage{}) {
		over = append(over, gone)
	}
	for _, c := range children {
		if !c.Status.Final() {
			unfinished = append(unfinished, c)
			continue
		}
		below, spent, err := ex.descendants(c.ID)
		if err != nil {
			return nil, nil, err
		}
		if len(below) == 0 { // its result includes what retention has removed below it
			over = append(over, ex.TreeUsage(c))
			continue
		}
		unfinished, over = append(unfinished, below...), append(append(over, c.Usage), spent...)
	}
	return unfinished, over, nil
}

// SpentBelow returns the usage of descendants that retention has removed while the run
// was active.
func (ex *Executor) SpentBelow(id sentinels.RunID) (u sentinels.Usage, err error) {
	raw, ok, err := ex.opt.Store.Get(BucketSpent, []byte(id))
	if err == nil && ok {
		err = json.Unmarshal(raw, &u)
	}
	return u, err
}

// TreeUsage returns the usage of a finished run and its children.
func (ex *Executor) TreeUsage(info run.Info) sentinels.Usage {
	if res, err := ex.StoredResult(info); err == nil {
		return res.Usage
	}
	return info.Usage
}

// workspaceIsThere returns an error if the folder that a run would work in is gone: each of its steps
// would fail with an error of the system in place of what to do.
func (ex *Executor) workspaceIsThere(dir string, id sentinels.RunID, hint string) error {
	if exists := ex.opt.WorkspaceExists; exists == nil || exists(dir) {
		return nil
	}
	return &abi.Error{Code: abi.Conflict, Field: "workspace", Message: fmt.Sprintf("the workspace %s of run %s is gone", dir, id), Hint: hint}
}

// restore rebuilds a run in memory from its journal: the snapshot of the last iteration
// that ended, and the records after it. An invalid journal fails only this run.
func (ex *Executor) restore(ctx context.Context, info run.Info, parent *liveRun, opt resumeOptions) (r *liveRun, err error) {
	defer func() {
		if err != nil && r != nil {
			r.setPlugins(nil)
			r.cancel(err) // releases the context
		}
	}()
	st, err := history.Fold(ex.opt.Store, info.ID, info.Snapshot, nil)
	if err != nil {
		return nil, err
	}
	if !st.Complete() { // its finished steps are unknown and would be executed again
		return nil, failure.New(abi.Internal, "journal of run %s: records are missing after the first one, and there is no iteration snapshot", info.ID)
	}
	// The summary has the newest one: a resume may have moved the run.
	st.Start.Workspace = info.Workspace
	if err := ex.workspaceIsThere(info.Workspace, info.ID, fmt.Sprintf("sentinel resume %s --workspace DIR continues it in another folder", info.ID)); err != nil {
		return nil, err
	}
	view := ex.opt.Plugins.PastView(ctx, begun(st.Executions))
	used, own, err := ex.readDefinitions(&st.Definitions, view.Types())
	if err != nil {
		view.End()
		return nil, err
	}
	def := used.def
	r = ex.newRun(info.ID, st.Start, def, used.hash, parent, time.Duration(st.Elapsed)*time.Microsecond)
	r.info, r.onInterrupt = info, opt.OnInterrupt
	r.revision, r.edit, r.within, r.maker, r.ownEdit, r.view = used.revision, used.edit, used.within, used.maker, own, view
	if err = ex.svc.Values.LoadState(st); err != nil {
		return r, err
	}
	r.folded, r.steps = *st, st.Steps
	r.restorePending()
	r.keptIterations = retention.Recovered() // counts as one iteration what is left of earlier ones
	r.budget.Extend(r.id, st.Extension)
	r.stepsAtCrash = r.findStepsAtCrash()
	r.dropStart()
	r.folded.Definitions.Unload()
	r.internTexts()
	if opt.interrupted != nil {
		r.interruptedProcesses = opt.interrupted[r.id]
		return r, nil
	}
	return r, r.findInterruptedProcesses(ctx)
}
