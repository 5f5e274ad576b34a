package runtime

import (
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	runtypes "github.com/sentinel-runtime/sentinel/runtime/run" // the name run is the type
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// What callers and observers see of runs, see package run.
type (
	RunInfo         = runtypes.Info
	RunFilter       = runtypes.Filter
	RunTotals       = runtypes.Totals
	Result          = runtypes.Result
	RetryWait       = runtypes.RetryWait
	StepCrashes     = runtypes.StepCrashes
	Decision        = runtypes.Decision
	DecisionKind    = runtypes.DecisionKind
	PendingDecision = runtypes.PendingDecision
)

// The kinds of a [PendingDecision].
const (
	DecisionApproval   = runtypes.DecisionApproval
	DecisionDoubt      = runtypes.DecisionDoubt
	DecisionQuarantine = runtypes.DecisionQuarantine
)

// Unfinished returns the statuses of runs that are not over.
func Unfinished() []sentinels.Status { return runtypes.Unfinished() }

// openRunIndex makes the index of the runs in the store.
func (rt *Runtime) openRunIndex() error {
	rt.index = runindex.New(runindex.Options{Store: rt.db, Summaries: bucketRuns, Active: rt.activeSummary, Starting: rt.startingRuns})
	return rt.index.Open(rt.ctx)
}

func (rt *Runtime) activeSummary(id sentinels.RunID) (RunInfo, bool) {
	r := rt.live(id)
	if r == nil {
		return RunInfo{}, false
	}
	return r.summary(), true
}

// startingRuns returns the runs whose start is on its way to the store.
func (rt *Runtime) startingRuns() []RunInfo {
	rt.mu.Lock()
	fresh := slices.Collect(maps.Values(rt.fresh))
	rt.mu.Unlock()
	infos := make([]RunInfo, 0, len(fresh))
	for _, r := range fresh {
		infos = append(infos, r.summary())
	}
	return infos
}

// Runs returns summaries, the newest first. A run is among them from the moment
// its id is known. Summaries that cannot be read are left out and are the error,
// beside what could be.
func (rt *Runtime) Runs(f RunFilter) ([]RunInfo, error) { return rt.index.List(f) }

// Totals returns what the runs of a sentinel come to; nothing for one that has
// none. The first call of a process looks at every run there is, later ones at
// none.
func (rt *Runtime) Totals(id sentinels.ID) (RunTotals, error) { return rt.index.Totals(id) }
