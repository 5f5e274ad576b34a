package runtime

import (
	"context"
	"fmt"
	stdruntime "runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Recovery says what became of the runs that the last process left behind.
type Recovery struct {
	Resumed     int           `json:"resumed"`               // taken over, with those counted below
	Waiting     int           `json:"waiting"`               // of them: for a person
	Paused      int           `json:"paused"`                // of them: stay so
	InDoubt     []Doubt       `json:"inDoubt,omitempty"`     // calls that were cut off
	Quarantined []Quarantine  `json:"quarantined,omitempty"` // runs that are held because a step was executing at too many crashes
	Failed      []Unrestored  `json:"failed,omitempty"`      // stay as they are
	Took        time.Duration `json:"-"`
	Millis      float64       `json:"durationMs"`
}

// A Doubt is a call that was under way when the last process ended, and what is
// done about it: retry, fail, or ask a person.
type Doubt struct {
	Run      sentinels.RunID     `json:"run"`
	Sentinel sentinels.ID        `json:"sentinel"`
	Call     string              `json:"call"` // as in [PendingDecision]
	Step     string              `json:"step"` // its address
	What     string              `json:"what"`
	Choice   sentinels.Interrupt `json:"choice"`
}

// A Quarantine is a run whose step was executing at too many crashes.
type Quarantine struct {
	Run      sentinels.RunID `json:"run"`
	Sentinel sentinels.ID    `json:"sentinel"`
	Step     string          `json:"step"` // its execution path
	Crashes  int             `json:"crashes"`
}

// An Unrestored run cannot be taken over. It stays as its journal has it.
type Unrestored struct {
	Run      sentinels.RunID `json:"run"`
	Sentinel sentinels.ID    `json:"sentinel,omitempty"`
	Error    *abi.Error      `json:"error"`
}

// A bulkInterrupted returns for all runs at once what [Executions.Interrupted]
// returns for one, for a host that would look through the same list for each.
type bulkInterrupted interface {
	InterruptedRuns(ctx context.Context) (map[sentinels.RunID][]InterruptedExecution, error)
}

// ResumeAll takes over every run that is not over and that this process does
// not execute yet, parents before their children. Paused runs stay paused, and
// waiting ones wait. A run that cannot be restored keeps out only the runs
// below it: without their parent they would spend beyond its budget.
//
// Of opt only OnInterrupt and By count. The error says that the runs cannot be
// listed, or that ctx ended; what was done until then is in the Recovery.
func (rt *Runtime) ResumeAll(ctx context.Context, opt ResumeOptions) (Recovery, error) {
	began := time.Now()
	log := &recoveryLog{}
	opt = ResumeOptions{OnInterrupt: opt.OnInterrupt, By: opt.By, all: true}
	err := rt.resumeAll(ctx, opt, log)
	rec := log.sorted()
	rec.Took = time.Since(began)
	rec.Millis = float64(rec.Took.Microseconds()) / 1000
	return rec, err
}

func (rt *Runtime) resumeAll(ctx context.Context, opt ResumeOptions, log *recoveryLog) error {
	if bulk, ok := rt.opt.Executions.(bulkInterrupted); ok {
		cut, err := bulk.InterruptedRuns(ctx)
		if err != nil {
			return fmt.Errorf("resume all: end what is left of their processes: %w", err)
		}
		if opt.cut = cut; cut == nil {
			opt.cut = map[sentinels.RunID][]InterruptedExecution{}
		}
	}
	living, err := rt.livingRuns(log)
	if err != nil {
		return fmt.Errorf("resume all: %w", err)
	}
	tops, err := rt.tops(living)
	if err != nil {
		return fmt.Errorf("resume all: %w", err)
	}
	over := &takeover{rt: rt, log: log}
	each(tops, func(t top) {
		if ctx.Err() != nil {
			return
		}
		err := over.restore(ctx, t.info, t.parent, opt)
		if err != nil && rt.live(t.info.ID) == nil { // else it was resumed meanwhile
			log.lost(rt, t.info, err)
			rt.log.Error("run cannot continue", "run", t.info.ID, "sentinel", t.info.Sentinel, "error", err)
		}
	})
	over.begin() // also of what was restored when ctx ended: it is this process's by now
	return context.Cause(ctx)
}

// each calls fn for every item, on as many goroutines as there are processors.
func each[T any](items []T, fn func(T)) {
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
func (rt *Runtime) livingRuns(log *recoveryLog) ([]RunInfo, error) {
	var ids []sentinels.RunID
	if err := rt.index.Unfinished(func(id sentinels.RunID) bool {
		ids = append(ids, id)
		return true
	}); err != nil {
		return nil, err
	}
	type read struct {
		id   sentinels.RunID
		info *RunInfo
	}
	infos := make([]read, len(ids))
	for i, id := range ids {
		infos[len(ids)-1-i].id = id
	}
	places := make([]*read, len(infos))
	for i := range infos {
		places[i] = &infos[i]
	}
	each(places, func(at *read) {
		info, found, err := rt.index.Stored(at.id)
		switch {
		case err != nil:
			log.lost(rt, RunInfo{ID: at.id}, err)
		case found && !info.Status.Final():
			at.info = &info
		}
	})
	living := make([]RunInfo, 0, len(infos))
	for _, at := range infos {
		if at.info != nil {
			living = append(living, *at.info)
		}
	}
	return living, nil
}

// A top is a run to take over that has none above it to take over.
type top struct {
	info   RunInfo
	parent *run // the nearest one above that continues in this process already
}

// tops returns the runs to begin with. Those below come with them.
func (rt *Runtime) tops(living []RunInfo) ([]top, error) {
	goesOn := make(map[sentinels.RunID]bool, len(living))
	for _, info := range living {
		goesOn[info.ID] = true
	}
	over := map[sentinels.RunID]sentinels.RunID{} // of runs that are over: their parents
	var out []top
	for _, info := range living {
		if rt.live(info.ID) != nil {
			continue
		}
		above := info.Parent
		for above != "" && !goesOn[above] {
			next, known := over[above]
			if !known {
				up, found, err := rt.index.Stored(above)
				if err != nil && !found {
					return nil, err
				}
				next = up.Parent // none above a run that retention took
				over[above] = next
			}
			above = next
		}
		switch parent := rt.live(above); {
		case above == "":
			out = append(out, top{info: info})
		case parent != nil:
			out = append(out, top{info, parent})
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
	rec Recovery
}

// took notes a run that was taken over as info has it.
func (l *recoveryLog) took(r *run, info RunInfo) {
	if l == nil {
		return
	}
	doubts, poisoned := r.doubts(), r.quarantine()
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
	if poisoned != nil {
		l.rec.Quarantined = append(l.rec.Quarantined, *poisoned)
	}
}

// lost notes a run that cannot be taken over, and those below it.
func (l *recoveryLog) lost(rt *Runtime, info RunInfo, err error) {
	if l == nil {
		return
	}
	below, _, belowErr := rt.descendants(info.ID)
	l.mu.Lock()
	l.rec.Failed = append(l.rec.Failed, Unrestored{info.ID, info.Sentinel, asError(err, abi.Internal)})
	l.mu.Unlock()
	if belowErr != nil {
		return // it is the reason that err gives
	}
	for _, c := range below {
		if rt.live(c.ID) == nil {
			l.lost(rt, c, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("resume run %s: run %s above it cannot be resumed", c.ID, info.ID)})
		}
	}
}

// sorted returns the recovery in the order of the runs' starts.
func (l *recoveryLog) sorted() Recovery {
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
func (r *run) doubts() []Doubt {
	var out []Doubt
	add := func(call, address, what string, choice sentinels.Interrupt) {
		out = append(out, Doubt{r.id, r.begin.Sentinel, call, address, what, choice})
	}
	for _, x := range r.cut {
		at := history.Address(x.Path)
		add(x.question(), at, "background process "+x.Execution, r.doubtChoice(r.stepInterrupt(at), false))
	}
	for _, e := range r.state.Executions {
		a := e.Attempt
		if a == nil {
			continue
		}
		address := history.Address(e.Path)
		for _, h := range a.Calls {
			if !h.InDoubt() {
				continue
			}
			c := call{function: h.Start.Function, start: h.Start}
			add(history.CallName(e.Path, h.Seq), address, c.what(), r.doubtChoice(r.stepInterrupt(address), h.Start.Safe))
		}
	}
	return out
}

// stepInterrupt is what the step at address says about calls in doubt.
func (r *run) stepInterrupt(address string) sentinels.Interrupt {
	step, err := r.definition().StepAt(address)
	if err != nil {
		return ""
	}
	return step.OnInterrupt
}
