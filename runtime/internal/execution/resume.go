package execution

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Resume is Runtime.Resume of package runtime.
func (ex *Executor) Resume(ctx context.Context, id sentinels.RunID, opt run.ResumeOptions) error {
	if r := ex.live(id); r != nil {
		if opt.Workspace != "" && opt.Workspace != r.begin.Workspace {
			return &abi.Error{Code: abi.Conflict, Field: "workspace", Message: fmt.Sprintf("run %s is active in %s and cannot be moved", id, r.begin.Workspace),
				Hint: "sentinel fork --workspace DIR or retry --workspace DIR makes a run in another folder"}
		}
		if held := quarantines(r.decisions()); len(held) > 0 && r.status() != sentinels.StatusPaused {
			if strings.TrimSpace(opt.Comment) == "" {
				return needsComment(id)
			}
			return ex.liftQuarantines(ctx, id, held, opt)
		}
		r.mu.Lock()
		trees := treesOf(r.info)
		r.mu.Unlock()
		if err := r.resume(ctx, opt); err != nil {
			return err
		}
		if strings.TrimSpace(opt.Comment) != "" {
			if err := ex.liftQuarantines(ctx, id, quarantines(r.decisions()), opt); err != nil {
				return err
			}
		}
		if !opt.Tree {
			return nil
		}
		return ex.resumeTree(ctx, id, trees, opt)
	}
	info, err := ex.Status(id)
	if err != nil {
		return err
	}
	if info.Status.Final() {
		return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("run %s is over: %s", id, info.Status), Hint: "start the sentinel again"}
	}
	if err := needsExtension(id, info.Limit, opt.Extension); err != nil {
		return err
	}
	if info.Parent != "" {
		// Resumed alone, it would not share the budget and limits of its tree.
		up, err := ex.Status(info.Parent)
		if err != nil && abi.CodeOf(err) != abi.NotFound {
			return err
		}
		if err == nil && !up.Status.Final() && !up.Live {
			return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("run %s is a child of run %s, which no process executes", id, info.Parent),
				Hint: "resume run " + string(info.Parent)}
		}
	}
	if held := quarantines(info.Decisions); strings.TrimSpace(opt.Comment) != "" && len(held) > 0 {
		if err := ex.liftQuarantines(ctx, id, held, opt); err != nil {
			return err
		}
		if info, err = ex.Status(id); err != nil {
			return err
		}
	}
	return ex.takeOver(ctx, info, ex.live(info.Parent), resumeOptions{ResumeOptions: opt, trees: treesOf(info)})
}

// needsExtension returns an error if the run is paused at a limit that more does not
// extend.
func needsExtension(id sentinels.RunID, limit string, more run.LimitExtension) error {
	var missing string
	switch {
	case limit == "maxIterations" && more.Iterations <= 0:
		missing = "--max-iterations +N"
	case limit == "timeoutMs" && more.TimeoutMs <= 0:
		missing = "--timeout +DURATION"
	case limit == "budget.costUsd" && more.CostUSD <= 0:
		missing = "--budget-usd +X"
	case limit == "budget.tokens" && more.Tokens <= 0:
		missing = "--budget-tokens +N"
	case limit == "budget.calls" && more.Calls <= 0:
		missing = "--budget-calls +N"
	}
	if missing == "" {
		return nil
	}
	return &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("run %s is paused at its limit %s: resuming it requires a limit extension", id, limit), Hint: "resume it with " + missing}
}

// extendLimits adds the extension to the limits of the run and records it.
func (r *liveRun) extendLimits(opt run.ResumeOptions) *store.Ticket {
	r.snap.Lock()
	defer r.snap.Unlock()
	t := r.Write(step.Commit{}, &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: "resume", By: opt.By, Extension: &opt.Extension}})
	r.budget.Extend(r.id, opt.Extension)
	return t
}

// pausedTrees are the runs with whose whole trees a run and its descendants were paused.
type pausedTrees []sentinels.RunID

// treesOf returns what is resumed with the tree of a run: what was paused with it, and what was paused with it by a
// pause of a run above.
func treesOf(info run.Info) pausedTrees {
	return pausedTrees{info.ID, cmp.Or(info.PausedWith, info.ID)}
}

// have reports whether a run was paused with one of the trees. One that was paused for itself, by a person for example
// before an agent paused the tree, stays so.
func (t pausedTrees) have(info run.Info) bool { return slices.Contains(t, info.PausedWith) }

// overrules returns the error of opt for the pause of a run, nil if the resume may end it.
func overrules(opt run.ResumeOptions, paused run.Info) error {
	if by := paused.PausedBy(); by != "" && opt.Over != nil {
		return opt.Over(by)
	}
	return nil
}

// resumeTree resumes the active descendants of a run that were paused with its tree.
func (ex *Executor) resumeTree(ctx context.Context, id sentinels.RunID, trees pausedTrees, opt run.ResumeOptions) error {
	for _, c := range ex.liveDescendants(id) {
		c.mu.Lock()
		inTree := c.info.Status == sentinels.StatusPaused && trees.have(c.info)
		c.mu.Unlock()
		kept := false
		below := run.ResumeOptions{By: opt.By, Over: func(by string) error {
			if opt.Over == nil {
				return nil
			}
			err := opt.Over(by)
			kept = kept || err != nil
			return err
		}}
		if !inTree {
			continue
		}
		err := c.resume(ctx, below)
		if err != nil && !kept && abi.CodeOf(err) != abi.Conflict { // conflict: it was resumed or ended meanwhile
			return err
		}
	}
	return nil
}

// resume continues a paused run of this process. It returns when the resume is durable.
func (r *liveRun) resume(ctx context.Context, opt run.ResumeOptions) error {
	limit, err := r.resumable(opt)
	if err != nil {
		return err
	}
	if err := needsExtension(r.id, limit, opt.Extension); err != nil {
		return err
	}
	if err := r.ex.opt.Health.Writable(); err != nil {
		return err
	}
	if err := r.ex.opt.Health.Await(ctx, r.extendLimits(opt)); err != nil {
		return err
	}
	// Under the lock of statuses, or a pause that comes now would have its gate
	// opened, and one that came in between would end although opt.Over refuses that.
	r.snap.Lock()
	if _, err := r.resumable(opt); err != nil {
		r.snap.Unlock()
		return err
	}
	r.updateStatus(nil, false)
	r.clock.Resume()
	r.gate.Open()
	r.snap.Unlock()
	r.timeout.arm()
	return nil
}

// resumable returns the error of a resume of a run that is not paused, or whose pause opt does not end, and the limit
// that it is paused at.
func (r *liveRun) resumable(opt run.ResumeOptions) (limit string, err error) {
	r.mu.Lock()
	info := r.info
	r.mu.Unlock()
	if info.Status != sentinels.StatusPaused {
		return "", failure.New(abi.Conflict, "run %s is %s, not paused", r.id, info.Status)
	}
	return info.Limit, overrules(opt, info)
}
