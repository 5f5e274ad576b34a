package runindex

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// List returns summaries, the newest first. A run is among them from the moment
// its id is known. Summaries that cannot be read are left out and are the error,
// beside what could be.
func (x *Index) List(f run.Filter) ([]run.Info, error) {
	if f.Status != "" {
		f.Statuses = append(slices.Clone(f.Statuses), f.Status)
	}
	l := &list{x: x, filter: f, fresh: x.opt.Starting()}
	slices.SortFunc(l.fresh, func(a, b run.Info) int { return strings.Compare(string(b.ID), string(a.ID)) })
	err := l.scan()
	if err == nil {
		l.before("")
	}
	return l.out, errors.Join(err, l.bad)
}

// list merges the runs of the store with those that are not there yet.
type list struct {
	x      *Index
	filter run.Filter
	fresh  []run.Info // the newest first, not in out so far
	out    []run.Info
	bad    error
}

// scan goes through the stored runs by the index that fits best.
func (l *list) scan() error {
	switch f := l.filter; {
	case f.Parent != "":
		return l.x.indexed(indexParent+string(f.Parent)+"/", f.Before, l.lookup)
	case unfinished(f):
		return l.x.indexed(indexLive, f.Before, l.lookup)
	case f.Sentinel != "":
		return l.x.indexed(indexSentinel+string(f.Sentinel)+"/", f.Before, l.lookup)
	}
	var after []byte
	if l.filter.Before != "" {
		after = []byte(l.filter.Before)
	}
	return l.x.opt.Store.Scan(l.x.opt.Summaries, nil, after, true, func(key, value []byte) bool {
		return l.stored(sentinels.RunID(key), value)
	})
}

// unfinished reports whether the filter wants only runs that are not over.
func unfinished(f run.Filter) bool {
	return len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, sentinels.Status.Final)
}

func (l *list) lookup(id sentinels.RunID) bool {
	raw, found, err := l.x.opt.Store.Get(l.x.opt.Summaries, []byte(id))
	if err != nil {
		l.bad = errors.Join(l.bad, err)
		return false
	}
	return !found || l.stored(id, raw) // else retention took it meanwhile
}

// stored adds a run that the store has; false ends the scan.
func (l *list) stored(id sentinels.RunID, raw []byte) bool {
	if l.tooOld(id) || !l.before(id) {
		return false
	}
	if info, active := l.x.opt.Active(id); active {
		return l.add(info)
	}
	var info run.Info
	if err := l.x.opt.Project.Decode(raw, &info); err != nil {
		l.bad = errors.Join(l.bad, fmt.Errorf("read run %s: %w", id, err))
		return true
	}
	return l.add(info)
}

// tooOld reports whether this run and all behind it began too early. Ids and times of
// one start are read from the clock a moment apart.
func (l *list) tooOld(id sentinels.RunID) bool {
	at := startTime(id)
	return !l.filter.Since.IsZero() && !at.IsZero() && at.Before(l.filter.Since.Add(-time.Second))
}

// before adds the runs that began after id and are not in the store, and reports whether
// more may be added. If id itself was stored meanwhile, the store's entry counts.
func (l *list) before(id sentinels.RunID) bool {
	for len(l.fresh) > 0 && l.fresh[0].ID >= id {
		info := l.fresh[0]
		l.fresh = l.fresh[1:]
		if now, active := l.x.opt.Active(info.ID); active {
			info = now
		}
		if info.ID != id && !l.add(info) {
			return false
		}
	}
	return l.room()
}

func (l *list) room() bool { return l.filter.Limit == 0 || len(l.out) < l.filter.Limit }

// add takes a run that fits; false ends the list.
func (l *list) add(info run.Info) bool {
	if !l.room() {
		return false
	}
	if fits(l.filter, info) {
		l.out = append(l.out, info)
	}
	return l.room()
}

func fits(f run.Filter, info run.Info) bool {
	switch {
	case f.Sentinel != "" && f.Sentinel != info.Sentinel,
		f.OfStored && !info.OfStored(),
		f.Parent != "" && f.Parent != info.Parent,
		f.Root != "" && f.Root != info.Root,
		f.Before != "" && info.ID >= f.Before,
		!f.Since.IsZero() && info.CreatedAt.Before(f.Since):
		return false
	}
	return len(f.Statuses) == 0 || slices.Contains(f.Statuses, info.Status)
}
