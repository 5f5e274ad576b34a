package execution

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Pause is Runtime.Pause of package runtime.
func (ex *Executor) Pause(ctx context.Context, id sentinels.RunID, by string) error {
	return ex.PauseWith(ctx, id, run.PauseOptions{By: by})
}

// PauseWith is Runtime.PauseWith of package runtime.
func (ex *Executor) PauseWith(ctx context.Context, id sentinels.RunID, opt run.PauseOptions) error {
	with := sentinels.RunID("")
	if opt.Tree {
		with = id
	}
	if r := ex.live(id); r != nil {
		tickets := []*store.Ticket{r.pauseBy(opt, with)}
		if opt.Tree {
			for _, c := range ex.liveDescendants(id) {
				tickets = append(tickets, c.pauseBy(opt, with))
			}
		}
		for _, t := range tickets {
			if t == nil {
				continue
			}
			if err := ex.opt.Health.Await(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}
	info, err := ex.Status(id)
	if err != nil {
		return err
	}
	if info.Status.Final() {
		return failure.New(abi.Conflict, "run %s is over: %s", id, info.Status)
	}
	return ex.pauseStored(ctx, info, opt, with)
}

// pauseStored pauses a run that no process executes, by a record in its journal.
func (ex *Executor) pauseStored(ctx context.Context, info run.Info, opt run.PauseOptions, with sentinels.RunID) error {
	if info.Status != sentinels.StatusPaused || takesOver(opt, info) {
		info.Status, info.Reason, info.PausedWith = sentinels.StatusPaused, run.PauseReason(opt.By), with
		body := &journal.StatusBody{Status: info.Status, Reason: info.Reason, By: opt.By, With: with}
		if err := ex.appendStored(ctx, &info, &journal.Record{Kind: journal.Status, Status: body}); err != nil {
			return err
		}
	}
	if !opt.Tree {
		return nil
	}
	below, _, err := ex.descendants(info.ID)
	if err != nil {
		return err
	}
	for _, c := range below {
		if err := ex.pauseStored(ctx, c, opt, with); err != nil {
			return err
		}
	}
	return nil
}

// takesOver reports whether a pause replaces that of a paused run: another user paused it, or the want of a plugin,
// which would end with the plugin's return, and no limit.
func takesOver(opt run.PauseOptions, paused run.Info) bool {
	return opt.Over && paused.Limit == "" && paused.PausedBy() != opt.By
}

// pauseBy is pause for a user.
func (r *liveRun) pauseBy(opt run.PauseOptions, with sentinels.RunID) *store.Ticket {
	over := func(paused run.Info) bool { return takesOver(opt, paused) }
	return r.pauseOver(journal.StatusBody{Reason: run.PauseReason(opt.By), By: opt.By, With: with}, over)
}

// pause blocks the run at its next step, for no user. with is the run whose whole tree is paused,
// empty if only this run is. It returns nil if the run is paused or over already.
func (r *liveRun) pause(reason, limit string, with sentinels.RunID) *store.Ticket {
	return r.pauseOver(journal.StatusBody{Reason: reason, Limit: limit, With: with}, func(run.Info) bool { return false })
}

// pauseOver is pause also for a run that is paused already, if over says so of it.
func (r *liveRun) pauseOver(body journal.StatusBody, over func(paused run.Info) bool) *store.Ticket {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	if r.info.Status == sentinels.StatusPaused && !over(r.info) || r.info.Status.Final() {
		r.mu.Unlock()
		return nil
	}
	pending := r.info.Decisions
	r.mu.Unlock()
	r.gate.Shut()
	r.clock.Pause()
	body.Status = sentinels.StatusPaused
	return r.setStatus(body, pending, nil)
}

// pauseWithParent pauses a new run whose parent was paused with its tree: a step of the
// parent that was executing may still start children. The pause lists descendants after
// it has paused the parent, and this runs after r is listed, so no child is missed.
func (r *liveRun) pauseWithParent() {
	if r.parent == nil {
		return
	}
	r.parent.mu.Lock()
	up := r.parent.info
	r.parent.mu.Unlock()
	if up.Status == sentinels.StatusPaused && up.PausedWith != "" {
		r.pause(up.Reason, "", up.PausedWith)
	}
}
