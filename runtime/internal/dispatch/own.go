package dispatch

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A file system does not say which process changed a file, so a run is known as the
// cause of a change only by time. An edit by a person during a run looks the same, and
// must not be lost. So a change during a run fires, and continues the chain of the run,
// whose length is limited (T2.4). What tells the two apart is that a run changes its
// files in every run and at no other time, while a person does not pause for a run to
// begin: a series of firings in which all changes were made during runs of the
// sentinel, with pauses in between in which nothing was changed, is the sentinel's own.
const (
	ownDelayed = 2 // length of the series from which firings wait
	ownIgnored = 5 // length from which they are ignored
	ownWait    = 5 * time.Second
)

const ownHint = `"ignoreOwn": false starts a run for them, "ignore" leaves files out`

// Clocks of file systems are up to 10 ms behind, and the time of a deletion is that at
// which it was found.
const (
	slackBefore = 20 * time.Millisecond
	slackAfter  = 250 * time.Millisecond
)

// An activeRun is one run as the cause of changes. Its chain includes the run.
type activeRun struct {
	inherited bool // an earlier process began it
	begun     time.Time
	ended     time.Time // zero while it is active
	chain     eventlog.Chain
}

// maxEnded is how many ended runs of a sentinel are kept as causes of changes that are
// found later. Changes are found within a second, unless they take longer to settle.
const maxEnded = 64

func (r activeRun) covers(at time.Time) bool {
	return !at.Before(r.begun.Add(-slackBefore)) && (r.ended.IsZero() || !at.After(r.ended.Add(slackAfter)))
}

// made returns the chain of the run that saved a revision with new triggers, so that runs
// which make triggers that fire runs which make triggers come to an end too. A sentinel that
// edits its own triggers keeps the chain that they had: it can do so every day for years, and
// has no more runs for it.
func made(r Revision, before map[string]record) eventlog.Chain {
	path := r.Chain.Path
	if len(path) == 0 || path[len(path)-1] != string(r.ID) {
		return r.Chain
	}
	var kept eventlog.Chain
	for _, rec := range before {
		kept = kept.Longer(rec.chain())
	}
	return kept
}

// traceCause sets the chain of a firing: the longest of that of its event, that of the run
// which made the trigger, and that of the changes which it reports.
func (t *armedTrigger) traceCause(f *triggers.Firing) {
	chain := eventlog.ChainOf(f.Event).Longer(t.made).Longer(t.changed(f))
	if f.Saved {
		chain = chain.Longer(t.s.saved)
	}
	if chain.Hops == f.Event.Hops {
		return
	}
	event := *f.Event
	event.Hops, event.Path = chain.Hops, chain.Path
	f.Event = &event
}

// changed returns the chain of the changes that a firing reports: if each was made during a
// run, it is the longest chain of these runs. A chain of the sentinel's own runs is
// preferred, so that a series of them is recognized.
func (t *armedTrigger) changed(f *triggers.Firing) eventlog.Chain {
	var all, own eventlog.Chain
	allOwn := true
	for _, at := range f.Changed {
		found, mine := t.s.d.causes(t.s.id, at)
		if found.Hops == 0 {
			return eventlog.Chain{}
		}
		all, own = all.Longer(found), own.Longer(mine)
		allOwn = allOwn && mine.Hops > 0
	}
	if allOwn {
		return own
	}
	return all
}

// ChainAt returns the chain of a change of a file of a sentinel at a time: that of its own
// runs, or else the longest of the runs that were active then.
func (d *Dispatcher) ChainAt(id sentinels.ID, at time.Time) (hops int, path []string) {
	all, own := d.causes(id, at)
	if own.Hops > 0 {
		all = own
	}
	return all.Hops, all.Path
}

// causes returns the longest chain of the runs that were active at a time, and that of
// the runs of one sentinel among them; without hops if there are none.
func (d *Dispatcher) causes(id sentinels.ID, at time.Time) (all, own eventlog.Chain) {
	d.mu.Lock()
	defer d.mu.Unlock()
	look := func(sentinel sentinels.ID, r activeRun) {
		if !r.covers(at) {
			return
		}
		if all = all.Longer(r.chain); sentinel == id {
			own = own.Longer(r.chain)
		}
	}
	for sentinel, runs := range d.active {
		for _, r := range runs {
			look(sentinel, r)
		}
	}
	for sentinel, runs := range d.ended {
		for _, r := range runs {
			look(sentinel, r)
		}
	}
	return all, own
}

// ownDelay returns how many runs of the sentinel in a row led to a firing by changes
// that were made during them, and how long the firing waits for that reason.
func (t *armedTrigger) ownDelay(f triggers.Firing) (delay time.Duration, series int) {
	if !f.IgnoreOwn || len(f.Changed) == 0 {
		return 0, 0
	}
	path := f.Event.Path
	for len(path) > series && path[len(path)-1-series] == string(t.s.id) {
		series++
	}
	if series >= ownDelayed && series < ownIgnored {
		delay = ownWait << (series - ownDelayed)
	}
	return delay, series
}
