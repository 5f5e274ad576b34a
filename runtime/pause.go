package runtime

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// PauseOptions say how a run is paused.
type PauseOptions struct {
	// By says who wants it. Default empty: not known.
	By string
	// Tree pauses every run below it too, also those that are started while it is
	// paused. Default: the run alone.
	Tree bool
}

// Pause holds a run back at its next step boundary: what is under way ends and
// is recorded, nothing starts. Its clock stands still. Pausing a paused run
// changes nothing.
func (rt *Runtime) Pause(ctx context.Context, id sentinels.RunID, by string) error {
	return rt.PauseWith(ctx, id, PauseOptions{By: by})
}

// PauseWith is [Runtime.Pause] with options. It returns when the pauses are
// durable. With Tree a run that is paused already stays paused as it is: a later
// resume of the tree leaves it so.
func (rt *Runtime) PauseWith(ctx context.Context, id sentinels.RunID, opt PauseOptions) error {
	with := sentinels.RunID("")
	if opt.Tree {
		with = id
	}
	if r := rt.live(id); r != nil {
		tickets := []ticket{r.pause("by "+opt.By, "", opt.By, with)}
		if opt.Tree {
			for _, c := range rt.below(id) {
				tickets = append(tickets, c.pause("by "+opt.By, "", opt.By, with))
			}
		}
		for _, t := range tickets {
			if t == nil {
				continue
			}
			if err := rt.await(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}
	info, err := rt.Status(id)
	if err != nil {
		return err
	}
	if info.Status.Final() {
		return errf(abi.Conflict, "run %s is over: %s", id, info.Status)
	}
	return rt.pauseStored(ctx, info, opt, with)
}

// pauseStored pauses a run that no process executes: a process that recovers it
// finds it so.
func (rt *Runtime) pauseStored(ctx context.Context, info RunInfo, opt PauseOptions, with sentinels.RunID) error {
	if info.Status != sentinels.StatusPaused {
		info.Status, info.Reason, info.PausedWith = sentinels.StatusPaused, "by "+opt.By, with
		body := &journal.StatusBody{Status: info.Status, Reason: info.Reason, By: opt.By, With: with}
		if err := rt.appendStored(ctx, &info, &journal.Record{Kind: journal.Status, Status: body}); err != nil {
			return err
		}
	}
	if !opt.Tree {
		return nil
	}
	below, _, err := rt.descendants(info.ID)
	if err != nil {
		return err
	}
	for _, c := range below {
		if err := rt.pauseStored(ctx, c, opt, with); err != nil {
			return err
		}
	}
	return nil
}

// pause holds the run back at its next step; with names the run whose tree is
// paused, empty if it is this run alone. It returns nil if there is nothing to
// pause.
func (r *run) pause(reason, limit, by string, with sentinels.RunID) ticket {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	if r.info.Status == sentinels.StatusPaused || r.info.Status.Final() {
		r.mu.Unlock()
		return nil
	}
	pending := r.info.Decisions
	r.mu.Unlock()
	r.gate.Shut()
	r.clock.Pause()
	return r.setStatus(journal.StatusBody{Status: sentinels.StatusPaused, Reason: reason, Limit: limit, By: by, With: with}, pending, nil)
}

// startsPaused pauses a run that was started below one whose tree is paused: a
// step that was under way there may still start it. The pause looks for runs
// below after it paused the upper one, and this after the run is among them, so
// one of the two sees the other.
func (r *run) startsPaused() {
	if r.parent == nil {
		return
	}
	r.parent.mu.Lock()
	up := r.parent.info
	r.parent.mu.Unlock()
	if up.Status == sentinels.StatusPaused && up.PausedWith != "" {
		r.pause(up.Reason, "", "", up.PausedWith)
	}
}

// resumeBelow lets the runs of this process under a run continue that were paused
// with their tree.
func (rt *Runtime) resumeBelow(ctx context.Context, id sentinels.RunID, opt ResumeOptions) error {
	for _, c := range rt.below(id) {
		c.mu.Lock()
		with := c.info.Status == sentinels.StatusPaused && c.info.PausedWith != ""
		c.mu.Unlock()
		if !with {
			continue
		}
		err := c.resume(ctx, ResumeOptions{By: opt.By})
		if err != nil && abi.CodeOf(err) != abi.Conflict { // else it was resumed, or is over, meanwhile
			return err
		}
	}
	return nil
}

func (r *run) resume(ctx context.Context, opt ResumeOptions) error {
	r.mu.Lock()
	status, limit := r.info.Status, r.info.Limit
	r.mu.Unlock()
	if status != sentinels.StatusPaused {
		return errf(abi.Conflict, "run %s is %s, not paused", r.id, status)
	}
	if err := needsExtension(r.id, limit, opt.Extension); err != nil {
		return err
	}
	if err := r.rt.writable(); err != nil {
		return err
	}
	if err := r.rt.await(ctx, r.extendLimits(opt)); err != nil {
		return err
	}
	// Under the lock of statuses, or a pause that comes now would have its gate
	// opened.
	r.snap.Lock()
	if status := r.status(); status != sentinels.StatusPaused {
		r.snap.Unlock()
		return errf(abi.Conflict, "run %s is %s, not paused", r.id, status)
	}
	r.updateStatus(nil, false)
	r.clock.Resume()
	r.gate.Open()
	r.snap.Unlock()
	r.timeout.arm()
	return nil
}
