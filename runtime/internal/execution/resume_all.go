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
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A bulkInterrupted returns for all runs at once what [Executions.Interrupted]
// returns for one, for a host that would look through the same list for each.
type bulkInterrupted interface {
	InterruptedRuns(ctx context.Context) (map[sentinels.RunID][]external.InterruptedExecution, error)
}

// ResumeAll is Runtime.ResumeAll of package runtime.
func (ex *Executor) ResumeAll(ctx context.Context, opt run.ResumeOptions) (run.Recovery, error) {
	began := time.Now()
	log := &recoveryLog{}
	err := ex.resumeAll(ctx, resumeOptions{ResumeOptions: run.ResumeOptions{OnInterrupt: opt.OnInterrupt, By: opt.By}, all: true}, log)
	rec := log.sorted()
	rec.Took = time.Since(began)
	rec.Millis = float64(rec.Took.Microseconds()) / 1000
	return rec, err
}

func (ex *Executor) resumeAll(ctx context.Context, opt resumeOptions, log *recoveryLog) error {
	if bulk, ok := ex.svc.Executions.(bulkInterrupted); ok {
		interrupted, err := bulk.InterruptedRuns(ctx)
		if err != nil {
			return fmt.Errorf("resume all: end what is left of their processes: %w", err)
		}
		if opt.interrupted = interrupted; interrupted == nil {
			opt.interrupted = map[sentinels.RunID][]external.InterruptedExecution{}
		}
	}
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
		if ctx.Err() != nil {
			return
		}
		err := t.restore(ctx, root.info, root.parent, opt)
		if err != nil && ex.live(root.info.ID) == nil { // else it was resumed meanwhile
			log.addFailed(ex, root.info, err)
			ex.svc.Log.Error("run cannot continue", "run", root.info.ID, "sentinel", root.info.Sentinel, "error", err)
		}
	})
	t.begin() // also of what was restored when ctx ended: it is this process's by now
	return context.Cause(ctx)
}

// each calls fn for every item, on as many goroutines as there are processors.
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

// livingRuns reads the summaries of the runs that are not over, the oldest
// first. One that cannot be read is lost, and no other.
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

// A top is a run to take over that has none above it to take over.
type recoveryRoot struct {
	info   run.Info
	parent *liveRun // the nearest one above that continues in this process already
}

// tops returns the runs to begin with. Those below come with them.
func (ex *Executor) roots(unfinished []run.Info) ([]recoveryRoot, error) {
	isUnfinished := make(map[sentinels.RunID]bool, len(unfinished))
	for _, info := range unfinished {
		isUnfinished[info.ID] = true
	}
	over := map[sentinels.RunID]sentinels.RunID{} // of runs that are over: their parents
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
				next = up.Parent // none above a run that retention took
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

// A recoveryLog gathers a [Recovery]. A nil one gathers nothing.
//
// # Concurrency
//
// Safe for concurrent use.
type recoveryLog struct {
	mu  sync.Mutex
	rec run.Recovery
}

// took notes a run that was taken over as info has it.
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

// lost notes a run that cannot be taken over, and those below it.
func (l *recoveryLog) addFailed(ex *Executor, info run.Info, err error) {
	if l == nil {
		return
	}
	below, _, belowErr := ex.descendants(info.ID)
	l.mu.Lock()
	l.rec.Failed = append(l.rec.Failed, run.Unrestored{Run: info.ID, Sentinel: info.Sentinel, Error: step.AsError(err, abi.Internal)})
	l.mu.Unlock()
	if belowErr != nil {
		return // it is the reason that err gives
	}
	for _, c := range below {
		if ex.live(c.ID) == nil {
			l.addFailed(ex, c, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("resume run %s: run %s above it cannot be resumed", c.ID, info.ID)})
		}
	}
}

// sorted returns the recovery in the order of the runs' starts.
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

// doubts lists the calls of a restored run that were cut off, before it continues.
func (r *liveRun) doubts() []run.Doubt {
	var out []run.Doubt
	add := func(call, address, what string, choice sentinels.Interrupt) {
		out = append(out, run.Doubt{Run: r.id, Sentinel: r.begin.Sentinel, Call: call, Step: address, What: what, Choice: choice})
	}
	for _, x := range r.interruptedProcesses {
		at := history.Address(x.Path)
		add(processDecisionName(x), at, "background process "+x.Execution, step.DoubtChoice(r.stepInterrupt(at), false))
	}
	for _, e := range r.folded.Executions {
		a := e.Attempt
		if a == nil {
			continue
		}
		address := history.Address(e.Path)
		for _, h := range a.Calls {
			if !h.InDoubt() {
				continue
			}
			add(history.CallName(e.Path, h.Seq), address, step.CallName(h.Start), step.DoubtChoice(r.stepInterrupt(address), h.Start.Safe))
		}
	}
	return out
}

// stepInterrupt returns what is said about calls in doubt of the step at address.
func (r *liveRun) stepInterrupt(address string) sentinels.Interrupt {
	var own sentinels.Interrupt
	if s, err := r.Definition().StepAt(address); err == nil {
		own = s.OnInterrupt
	}
	return r.OnInterrupt(own)
}
