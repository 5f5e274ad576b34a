package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A takeover takes runs over that another process began. All of them are
// restored before any continues: how a crash counts depends on how many steps were
// executing, over all runs.
type takeover struct {
	rt  *Runtime
	log *recoveryLog // nil: it is not wanted

	mu       sync.Mutex
	restored []restoredRun
}

// A restoredRun is ready to continue.
type restoredRun struct {
	run    *run
	info   RunInfo // as the last process left it
	parent *run
	opt    ResumeOptions
}

// takeOver takes over a run and everything below it.
func (rt *Runtime) takeOver(ctx context.Context, info RunInfo, parent *run, opt ResumeOptions) error {
	t := &takeover{rt: rt}
	if err := t.restore(ctx, info, parent, opt); err != nil {
		return err
	}
	t.begin()
	return nil
}

// restore restores a run and everything below it. Parents come first, so that a
// child finds its parent's budget. What becomes of those below goes into the log;
// the error is that of the run itself.
func (t *takeover) restore(ctx context.Context, info RunInfo, parent *run, opt ResumeOptions) error {
	rt := t.rt
	living, over, err := rt.descendants(info.ID)
	if err != nil {
		return fmt.Errorf("resume run %s: %w", info.ID, err)
	}
	r, err := rt.restoreAndAdopt(ctx, info, parent, opt)
	if err != nil {
		return err
	}
	if opt.Extension != (LimitExtension{}) {
		r.extendLimits(opt)
	}
	// What is spent must be charged before runs below spend more.
	r.budget.Charge(info.ID, r.state.Usage)
	for _, c := range over {
		r.budget.Charge(info.ID, c)
	}
	t.mu.Lock()
	t.restored = append(t.restored, restoredRun{r, info, parent, opt})
	t.mu.Unlock()
	for _, c := range living {
		below := ResumeOptions{OnInterrupt: opt.OnInterrupt, By: opt.By, Tree: opt.Tree, all: opt.all, cut: opt.cut}
		if err := t.restore(ctx, c, r, below); err != nil {
			t.log.lost(rt, c, err)
			rt.log.Error("child run cannot continue", "run", c.ID, "parent", info.ID, "error", err)
		}
	}
	return nil
}

// begin counts the crash, if there was one, and lets all that was restored continue.
func (t *takeover) begin() {
	executing := 0
	for _, x := range t.restored {
		executing += len(x.run.atCrash)
	}
	suspects := 0
	for _, x := range t.restored {
		x.run.countCrash(executing == 1)
		suspects += x.run.suspects()
	}
	if suspects > 1 {
		t.rt.turns.Gather()
	}
	each(t.restored, func(x restoredRun) {
		t.log.took(x.run, x.info)
		x.run.resumeRestored(x.info, x.parent, x.opt)
	})
}

// resumeRestored starts a run that was restored. Nothing waits for the record of it: the
// records of ten thousand are a few commits.
func (r *run) resumeRestored(info RunInfo, parent *run, opt ResumeOptions) {
	body := journal.StatusBody{Status: sentinels.StatusRunning, Resumed: true, By: opt.By}
	if info.Status == sentinels.StatusPaused && opt.staysPaused(info, parent) {
		r.clock.Pause()
		r.gate.Shut()
		body.Status, body.Reason, body.Limit, body.With = info.Status, info.Reason, info.Limit, info.PausedWith
	}
	r.snap.Lock()
	r.setStatus(body, nil, nil)
	r.snap.Unlock()
	go r.main()
}

// staysPaused says whether a paused run is taken over paused: all are when all
// are taken over; else one below the run that is resumed, unless it was paused
// with its tree and is resumed with it.
func (opt ResumeOptions) staysPaused(info RunInfo, parent *run) bool {
	return opt.all || parent != nil && (!opt.Tree || info.PausedWith == "")
}

// restoreAndAdopt makes a run one of this process's. Nothing comes into its
// journal behind what it has read: see [Runtime.appendBehind].
func (rt *Runtime) restoreAndAdopt(ctx context.Context, info RunInfo, parent *run, opt ResumeOptions) (*run, error) {
	rt.handover.RLock()
	defer rt.handover.RUnlock()
	r, err := rt.restore(ctx, info, parent, opt)
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w", info.ID, err)
	}
	if err := rt.adopt(r); err != nil {
		r.setPlugins(nil)
		r.cancel(err)
		return nil, err
	}
	return r, nil
}

// descendants returns the runs that continue below a run, each once: its children,
// and below those that are over theirs. over is what those that are over have
// spent.
func (rt *Runtime) descendants(id sentinels.RunID) (living []RunInfo, over []sentinels.Usage, err error) {
	children, err := rt.Runs(RunFilter{Parent: id})
	if err != nil {
		return nil, nil, err
	}
	gone, err := rt.spentBelow(id)
	if err != nil {
		return nil, nil, err
	}
	if gone != (sentinels.Usage{}) {
		over = append(over, gone)
	}
	for _, c := range children {
		if !c.Status.Final() {
			living = append(living, c)
			continue
		}
		below, spent, err := rt.descendants(c.ID)
		if err != nil {
			return nil, nil, err
		}
		if len(below) == 0 { // what retention took below it is in its own result
			over = append(over, rt.treeUsage(c))
			continue
		}
		living, over = append(living, below...), append(append(over, c.Usage), spent...)
	}
	return living, over, nil
}

// spentBelow is what descendants of a run have cost that retention took away
// while the run went on.
func (rt *Runtime) spentBelow(id sentinels.RunID) (u sentinels.Usage, err error) {
	raw, ok, err := rt.db.Get(bucketSpent, []byte(id))
	if err == nil && ok {
		err = json.Unmarshal(raw, &u)
	}
	return u, err
}

// treeUsage is what a run that is over and its children have spent.
func (rt *Runtime) treeUsage(info RunInfo) sentinels.Usage {
	if res, err := rt.storedResult(info); err == nil {
		return res.Usage
	}
	return info.Usage
}

// restore rebuilds the in-memory side of a run from its journal: the snapshot
// of the last iteration that ended, and the records behind it. A journal that
// makes no sense is an error of this run and of no other.
func (rt *Runtime) restore(ctx context.Context, info RunInfo, parent *run, opt ResumeOptions) (r *run, err error) {
	defer func() {
		if err != nil && r != nil {
			r.setPlugins(nil)
			r.cancel(err) // or the runtime would hold it to its own end
		}
	}()
	st, err := rt.fold(info.ID, info.Snapshot, nil)
	if err != nil {
		return nil, err
	}
	if !st.Complete() { // its steps are unknown and would be executed again
		return nil, errf(abi.Internal, "journal of run %s: records are missing behind the first one, and no iteration has ended since", info.ID)
	}
	view := rt.plugins.PastView(ctx, begun(st.Executions))
	used, own, err := rt.readDefinitions(&st.Definitions, view.Types())
	if err != nil {
		view.End()
		return nil, err
	}
	def := used.def
	r = rt.newRun(info.ID, st.Start, def, used.hash, parent, time.Duration(st.Elapsed)*time.Microsecond)
	r.info, r.onInterrupt = info, opt.OnInterrupt
	r.revision, r.edit, r.own, r.view = used.revision, used.edit, own, view
	if err = rt.loadState(st); err != nil {
		return r, err
	}
	r.state, r.steps = *st, st.Steps
	r.restorePending()
	r.kept = recoveredIterations() // all that is left of earlier iterations
	r.budget.Extend(r.id, st.Extension)
	r.atCrash = r.executingAtCrash()
	r.dropStart()
	r.state.Definitions.Unload()
	r.internTexts()
	if opt.cut != nil {
		r.cut = opt.cut[r.id]
		return r, nil
	}
	return r, r.interruptedExecutions(ctx)
}
