package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

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

// Runs returns summaries, the newest first. A run is among them from the moment
// its id is known. Summaries that cannot be read are left out and are the error,
// beside what could be.
func (rt *Runtime) Runs(f RunFilter) ([]RunInfo, error) {
	if f.Status != "" {
		f.Statuses = append(slices.Clone(f.Statuses), f.Status)
	}
	l := &runList{rt: rt, filter: f, fresh: rt.freshRuns()}
	err := l.scan()
	if err == nil {
		l.before("")
	}
	return l.out, errors.Join(err, l.bad)
}

// freshRuns returns the runs whose start is on its way to the store, the newest
// first.
func (rt *Runtime) freshRuns() []*run {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	fresh := make([]*run, 0, len(rt.fresh))
	for _, r := range rt.fresh {
		fresh = append(fresh, r)
	}
	sort.Slice(fresh, func(i, j int) bool { return fresh[i].id > fresh[j].id })
	return fresh
}

// runList merges the runs of the store with those that are not there yet.
type runList struct {
	rt     *Runtime
	filter RunFilter
	fresh  []*run // not in out so far
	out    []RunInfo
	bad    error
}

// scan goes through the stored runs by the index that fits best.
func (l *runList) scan() error {
	switch f := l.filter; {
	case f.Parent != "":
		return l.rt.indexed(indexParent+string(f.Parent)+"/", f.Before, l.lookup)
	case unfinished(f):
		return l.rt.indexed(indexLive, f.Before, l.lookup)
	case f.Sentinel != "":
		return l.rt.indexed(indexSentinel+string(f.Sentinel)+"/", f.Before, l.lookup)
	}
	var after []byte
	if l.filter.Before != "" {
		after = []byte(l.filter.Before)
	}
	return l.rt.db.Scan(bucketRuns, nil, after, true, func(key, value []byte) bool {
		return l.stored(sentinels.RunID(key), value)
	})
}

// unfinished reports whether the filter wants only runs that are not over.
func unfinished(f RunFilter) bool {
	return len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, sentinels.Status.Final)
}

func (l *runList) lookup(id sentinels.RunID) bool {
	raw, found, err := l.rt.db.Get(bucketRuns, []byte(id))
	if err != nil {
		l.bad = errors.Join(l.bad, err)
		return false
	}
	return !found || l.stored(id, raw) // else retention took it meanwhile
}

// stored adds a run that the store has; false ends the scan.
func (l *runList) stored(id sentinels.RunID, raw []byte) bool {
	if l.tooOld(id) || !l.before(id) {
		return false
	}
	if r := l.rt.live(id); r != nil {
		return l.add(r.summary())
	}
	var info RunInfo
	if err := json.Unmarshal(raw, &info); err != nil {
		l.bad = errors.Join(l.bad, fmt.Errorf("read run %s: %w", id, err))
		return true
	}
	return l.add(info)
}

// tooOld says that this run and all behind it began too early. Ids and times of
// one start are read from the clock a moment apart.
func (l *runList) tooOld(id sentinels.RunID) bool {
	at := startTime(id)
	return !l.filter.Since.IsZero() && !at.IsZero() && at.Before(l.filter.Since.Add(-time.Second))
}

// before adds the runs that began after id and are not in the store; false
// says that there is no room for more. Of id itself, if it was stored
// meanwhile, the store's entry stands for it.
func (l *runList) before(id sentinels.RunID) bool {
	for len(l.fresh) > 0 && l.fresh[0].id >= id {
		r := l.fresh[0]
		l.fresh = l.fresh[1:]
		if r.id != id && !l.add(r.summary()) {
			return false
		}
	}
	return l.room()
}

func (l *runList) room() bool { return l.filter.Limit == 0 || len(l.out) < l.filter.Limit }

// add takes a run that fits; false ends the list.
func (l *runList) add(info RunInfo) bool {
	if !l.room() {
		return false
	}
	if fits(l.filter, info) {
		l.out = append(l.out, info)
	}
	return l.room()
}

func fits(f RunFilter, info RunInfo) bool {
	switch {
	case f.Sentinel != "" && f.Sentinel != info.Sentinel,
		f.Parent != "" && f.Parent != info.Parent,
		f.Root != "" && f.Root != info.Root,
		f.Before != "" && info.ID >= f.Before,
		!f.Since.IsZero() && info.CreatedAt.Before(f.Since):
		return false
	}
	return len(f.Statuses) == 0 || slices.Contains(f.Statuses, info.Status)
}
