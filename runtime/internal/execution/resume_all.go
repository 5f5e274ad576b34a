package execution

import (
	"context"
	"fmt"
	stdruntime "runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// bulkInterrupted is an optional method of [external.Executions]. It returns the
// interrupted processes of all runs at once, for a host that would otherwise search the
// same list for each run.
type bulkInterrupted interface {
	InterruptedRuns(ctx context.Context) (map[sentinels.RunID][]external.InterruptedExecution, error)
}

// ResumeAll is Runtime.ResumeAll of package runtime.
func (ex *Executor) ResumeAll(ctx context.Context, opt run.ResumeOptions) (run.Recovery, error) {
	began := time.Now()
	log := &recoveryLog{}
	swapped := ex.opt.Plugins.Swapped()
	all := resumeOptions{ResumeOptions: run.ResumeOptions{OnInterrupt: opt.OnInterrupt, By: opt.By}, all: true}
	if bulk, ok := ex.svc.Executions.(bulkInterrupted); ok {
		interrupted, err := bulk.InterruptedRuns(ctx)
		if err != nil {
			return log.sorted(), fmt.Errorf("resume all: end processes of the last host: %w", err)
		}
		if all.interrupted = interrupted; interrupted == nil {
			all.interrupted = map[sentinels.RunID][]external.InterruptedExecution{}
		}
	}
	err := ex.resumeAll(ctx, all, nil, log)
	rec := log.sorted()
	if len(rec.Failed) > 0 {
		ex.resumeWithPlugins(all, rec.Failed, swapped)
	}
	rec.Took = time.Since(began)
	rec.Millis = float64(rec.Took.Microseconds()) / 1000
	return rec, err
}

// resumeWithPlugins takes over runs that could not be continued as soon as that succeeds after a change of
// the plugins: a definition with a step type that no plugin provides cannot be read.
func (ex *Executor) resumeWithPlugins(opt resumeOptions, failed []run.Unrestored, swapped <-chan struct{}) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.closed {
		return
	}
	ex.wg.Go(func() {
		for len(failed) > 0 {
			select {
			case <-swapped:
			case <-ex.ctx.Done():
				return
			}
			swapped = ex.opt.Plugins.Swapped()
			only := map[sentinels.RunID]bool{}
			for _, f := range failed {
				only[f.Run] = true
			}
			log := &recoveryLog{}
			if err := ex.resumeAll(ex.ctx, opt, only, log); err == nil {
				failed = log.sorted().Failed
			}
		}
	})
}

// resumeAll takes over runs that have not ended. only, unless it is nil, are those that recovery may begin
// with.
func (ex *Executor) resumeAll(ctx context.Context, opt resumeOptions, only map[sentinels.RunID]bool, log *recoveryLog) error {
	unfinished, err := ex.unfinishedRuns(log)
	if err != nil {
		return fmt.Errorf("resume all: %w", err)
	}
	roots, err := ex.roots(unfinished)
	if err != nil {
		return fmt.Errorf("resume all: %w", err)
	}
	t := &takeover{ex: ex, log: log}
	forEach(roots, func(root recoveryRoot) {
		if ctx.Err() != nil || only != nil && !only[root.info.ID] {
			return
		}
		err := t.restore(ctx, root.info, root.parent, opt)
		if err != nil && ex.live(root.info.ID) == nil { // not nil: it was resumed meanwhile
			log.addFailed(ex, root.info, err)
		}
	})
	t.begin() // also after ctx has ended: this process owns the runs that it has restored
	return context.Cause(ctx)
}

// forEach calls fn for every item, on at most GOMAXPROCS goroutines, and returns when
// all calls have.
func forEach[T any](items []T, fn func(T)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(stdruntime.GOMAXPROCS(0), len(items)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(items); i = int(next.Add(1)) - 1 {
				fn(items[i])
			}
		})
	}
	wg.Wait()
}

// unfinishedRuns returns the summaries of the runs that are not over, the oldest first.
// One that cannot be read is added to the log as failed and left out.
func (ex *Executor) unfinishedRuns(log *recoveryLog) ([]run.Info, error) {
	var ids []sentinels.RunID
	if err := ex.opt.Index.Unfinished(func(id sentinels.RunID) bool {
		ids = append(ids, id)
		return true
	}); err != nil {
		return nil, err
	}
	type read struct {
		id   sentinels.RunID
		info *run.Info
	}
	infos := make([]read, len(ids))
	for i, id := range ids {
		infos[len(ids)-1-i].id = id
	}
	places := make([]*read, len(infos))
	for i := range infos {
		places[i] = &infos[i]
	}
	forEach(places, func(at *read) {
		info, found, err := ex.opt.Index.Stored(at.id)
		switch {
		case err != nil:
			log.addFailed(ex, run.Info{ID: at.id}, err)
		case found && !info.Status.Final():
			at.info = &info
		}
	})
	unfinished := make([]run.Info, 0, len(infos))
	for _, at := range infos {
		if at.info != nil {
			unfinished = append(unfinished, *at.info)
		}
	}
	return unfinished, nil
}

// A recoveryRoot is an unfinished run without an unfinished run above it that is to be
// taken over as well.
type recoveryRoot struct {
	info   run.Info
	parent *liveRun // the nearest run above that this process executes already; nil if there is none
}

// roots returns the runs where recovery begins. Restoring one also restores its
// descendants.
func (ex *Executor) roots(unfinished []run.Info) ([]recoveryRoot, error) {
	isUnfinished := make(map[sentinels.RunID]bool, len(unfinished))
	for _, info := range unfinished {
		isUnfinished[info.ID] = true
	}
	over := map[sentinels.RunID]sentinels.RunID{} // parents of finished runs
	var out []recoveryRoot
	for _, info := range unfinished {
		if ex.live(info.ID) != nil {
			continue
		}
		above := info.Parent
		for above != "" && !isUnfinished[above] {
			next, known := over[above]
			if !known {
				up, found, err := ex.opt.Index.Stored(above)
				if err != nil && !found {
					return nil, err
				}
				next = up.Parent // empty if retention has removed the run
				over[above] = next
			}
			above = next
		}
		switch parent := ex.live(above); {
		case above == "":
			out = append(out, recoveryRoot{info: info})
		case parent != nil:
			out = append(out, recoveryRoot{info, parent})
		}
	}
	return out, nil
}

// A recoveryLog builds a [run.Recovery]. The methods of a nil recoveryLog do nothing.
type recoveryLog struct {
	mu  sync.Mutex
	rec run.Recovery
}

// addResumed adds a run that was taken over with the summary info.
func (l *recoveryLog) addResumed(r *liveRun, info run.Info) {
	if l == nil {
		return
	}
	doubts, quarantined := r.doubts(), r.quarantine()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Resumed++
	switch info.Status {
	case sentinels.StatusPaused:
		l.rec.Paused++
	case sentinels.StatusWaiting:
		l.rec.Waiting++
	}
	l.rec.InDoubt = append(l.rec.InDoubt, doubts...)
	if quarantined != nil {
		l.rec.Quarantined = append(l.rec.Quarantined, *quarantined)
	}
}

// addFailed adds a run that cannot be taken over, and its descendants.
func (l *recoveryLog) addFailed(ex *Executor, info run.Info, err error) {
	if l == nil {
		return
	}
	below, _, belowErr := ex.descendants(info.ID)
	l.mu.Lock()
	l.rec.Failed = append(l.rec.Failed, run.Unrestored{Run: info.ID, Sentinel: info.Sentinel, Error: failure.From(err, abi.Internal)})
	l.mu.Unlock()
	if belowErr != nil {
		return // err has the same cause
	}
	for _, c := range below {
		if ex.live(c.ID) == nil {
			l.addFailed(ex, c, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("resume run %s: run %s above it cannot be resumed", c.ID, info.ID)})
		}
	}
}

// sorted returns the recovery with its lists in the order in which the runs were
// started.
func (l *recoveryLog) sorted() run.Recovery {
	l.mu.Lock()
	defer l.mu.Unlock()
	rec := l.rec
	sort.SliceStable(rec.InDoubt, func(i, j int) bool {
		a, b := rec.InDoubt[i], rec.InDoubt[j]
		return a.Run < b.Run || a.Run == b.Run && a.Call < b.Call
	})
	sort.Slice(rec.Quarantined, func(i, j int) bool { return rec.Quarantined[i].Run < rec.Quarantined[j].Run })
	sort.Slice(rec.Failed, func(i, j int) bool { return rec.Failed[i].Run < rec.Failed[j].Run })
	return rec
}

// doubts returns the calls in doubt of a restored run, before it continues.
func (r *liveRun) doubts() []run.Doubt {
	var out []run.Doubt
	add := func(call, address, what string, choice sentinels.Interrupt) {
		out = append(out, run.Doubt{Run: r.id, Sentinel: r.begin.Sentinel, Call: call, Step: address, What: what, Choice: choice})
	}
	inDoubt := map[string]bool{} // paths of steps with a call in doubt
	for _, e := range r.folded.Executions {
		a := e.Attempt
		if a == nil {
			continue
		}
		address := sentinels.PathAddress(e.Path)
		for _, h := range a.Calls {
			if !h.InDoubt() || !r.ex.svc.MayHaveBegun(r.ctx, h.Start, a.Number, func() string { return step.CallKey(step.ExecutionKey(r.id, r.folded.Iteration, e.Path), h.Seq) }) {
				continue
			}
			inDoubt[e.Path] = true
			add(history.CallName(e.Path, h.Seq), address, step.CallName(h.Start), step.DoubtChoice(r.stepInterrupt(address), h.Start.Safe))
		}
	}
	for _, x := range r.interruptedProcesses {
		if inDoubt[x.Path] && !r.wasStarted(x) {
			continue // its call is the one in doubt: one effect, one decision
		}
		at := sentinels.PathAddress(x.Path)
		add(processDecisionName(x), at, "background process "+x.Execution, step.DoubtChoice(r.stepInterrupt(at), false))
	}
	return out
}

// wasStarted reports whether the call that started a process has a recorded end. It reports true if the journal cannot be
// read: the run fails by that when it continues.
func (r *liveRun) wasStarted(x external.InterruptedExecution) bool {
	calls, err := r.startingCalls()
	return err != nil || calls[x.Execution] != nil
}

// stepInterrupt returns the onInterrupt setting that applies to the step at address.
func (r *liveRun) stepInterrupt(address string) sentinels.Interrupt {
	return r.OnInterrupt(ownInterrupt(r.Definition(), address))
}

// ownInterrupt returns what the step at address says itself, "" for nothing.
func ownInterrupt(def *sentinels.Definition, address string) sentinels.Interrupt {
	s, err := def.StepAt(address)
	if err != nil {
		return ""
	}
	return s.OnInterrupt
}
