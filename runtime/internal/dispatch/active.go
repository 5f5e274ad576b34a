package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// The overlap policy of a sentinel depends on its active runs: started in any way,
// and not durably ended. The engine reports those of this process by RunStarted
// and RunEnded, whether triggers are armed or not; Arm finds those of earlier
// processes.

// findRuns notes the unfinished runs of earlier processes.
func (d *Dispatcher) findRuns() error {
	unfinished, err := d.opt.Runs.Unfinished()
	if err != nil {
		return fmt.Errorf("find the active runs: %w", err)
	}
	for _, id := range unfinished {
		d.mu.Lock()
		// The run may have ended since it was listed. Its end is durable before
		// RunEnded is called, and RunEnded needs the lock: so either its status is
		// final, or RunEnded comes after this and removes the run again.
		r, err := d.opt.Runs.Run(id)
		if err == nil && !r.Child && !r.Status.Final() {
			d.note(r.Sentinel, id, activeRun{inherited: true, chain: r.Chain})
		}
		d.mu.Unlock()
		if err != nil && abi.CodeOf(err) != abi.NotFound {
			d.log.Error("run cannot be read, its sentinel's triggers do not count it as active", "run", id, "error", err)
		}
	}
	return nil
}

// note counts a run as active from now on. The caller holds mu.
func (d *Dispatcher) note(id sentinels.ID, run sentinels.RunID, r activeRun) {
	if d.active[id] == nil {
		d.active[id] = map[sentinels.RunID]activeRun{}
	}
	if _, known := d.active[id][run]; !known { // arming again finds runs of this process too
		r.begun = time.Now()
		d.active[id][run] = r
	}
}

// RunStarted counts a run as active. Child runs are part of their parent's run and
// must not be reported.
// chain is that of the run, which it ends with.
func (d *Dispatcher) RunStarted(id sentinels.ID, run sentinels.RunID, chain eventlog.Chain) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(id, run, activeRun{chain: chain})
}

// RunStartsAlone is [Dispatcher.RunStarted] for a run that begins only if no other run of the
// sentinel is active. Otherwise it notes nothing and returns those, the oldest first. A run whose end
// is decided and not durable yet is none.
func (d *Dispatcher) RunStartsAlone(id sentinels.ID, run sentinels.RunID, chain eventlog.Chain) (active []sentinels.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other := range d.active[id] {
		if r, err := d.opt.Runs.Run(other); err != nil || !r.Status.Final() {
			active = append(active, other)
		}
	}
	if len(active) == 0 {
		d.note(id, run, activeRun{chain: chain})
	}
	slices.Sort(active)
	return active
}

// RunEnded is called once the end of a run is durable. It may be called for runs
// that were not reported as started. It does not block: it is called on the
// goroutine that runs the callbacks of commits.
func (d *Dispatcher) RunEnded(id sentinels.ID, run sentinels.RunID) {
	d.mu.Lock()
	if r, known := d.active[id][run]; known {
		r.ended = time.Now()
		list := append(d.ended[id], r)
		d.ended[id] = list[max(0, len(list)-maxEnded):]
	}
	delete(d.active[id], run)
	if len(d.active[id]) == 0 {
		delete(d.active, id)
	}
	delete(d.asking, run)
	d.mu.Unlock()
	d.drain(id)
}

// RunAsks is called when a run may be undecided, see [Runs.Undecided]. It does not block.
func (d *Dispatcher) RunAsks(id sentinels.ID, run sentinels.RunID) {
	d.mu.Lock()
	d.asking[run] = struct{}{}
	d.mu.Unlock()
	d.drain(id)
}

// drain has what is queued looked at again. A firing that is queued at this moment does
// that itself.
func (d *Dispatcher) drain(id sentinels.ID) {
	if s := d.sentinel(id); s != nil && s.waiting.Load() > 0 {
		d.spawn(s.drain)
	}
}

// undecided returns those of the active runs that are undecided.
func (d *Dispatcher) undecided(active []sentinels.RunID) (list []sentinels.RunID) {
	d.mu.Lock()
	for _, run := range active {
		if _, asks := d.asking[run]; asks {
			list = append(list, run)
		}
	}
	d.mu.Unlock()
	return slices.DeleteFunc(list, func(run sentinels.RunID) bool { return d.opt.Runs.Undecided(run) == "" })
}

// activeRuns returns the active runs of a sentinel, the oldest first.
func (d *Dispatcher) activeRuns(id sentinels.ID) []sentinels.RunID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []sentinels.RunID
	for run := range d.active[id] {
		out = append(out, run)
	}
	slices.Sort(out) // ids are ordered by time
	return out
}

// describe returns why the policy skip does not start a firing now: the oldest active
// run. until is not empty if the firing waits for the active runs instead of being
// skipped:
//
//   - Their ends are decided and only not durable yet. To a user they have ended, so
//     they are no reason to skip.
//   - An earlier process began them, and what the firing reports happened before this
//     process armed its triggers. The restart that interrupted the runs is what made the
//     firing late.
func (d *Dispatcher) describe(id sentinels.ID, f triggers.Firing, active []sentinels.RunID) (reason, until string) {
	for _, run := range active {
		r, err := d.opt.Runs.Run(run)
		if err == nil && r.Status.Final() {
			continue
		}
		reason = fmt.Sprintf("run %s is active", run)
		if err == nil {
			reason = fmt.Sprintf("run %s is %s", run, r.Status)
		}
		if d.late(f) && d.inherited(id, active) {
			until = reason + "; it began before the restart that made the firing late"
		}
		return reason, until
	}
	return "", fmt.Sprintf("run %s is ending", active[0])
}

// late reports whether what a firing reports, or one of the occasions that it stands for, happened before
// this process armed triggers. The newest planned time of a downtime may come behind that by a moment;
// the others, which it counts as missed, do not.
func (d *Dispatcher) late(f triggers.Firing) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f.Missed > 0 || f.At.Before(d.opened)
}

// inherited reports whether earlier processes began all of these active runs.
func (d *Dispatcher) inherited(id sentinels.ID, active []sentinels.RunID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !slices.ContainsFunc(active, func(run sentinels.RunID) bool { return !d.active[id][run].inherited })
}
