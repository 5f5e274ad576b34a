package repair

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A repair is one repair under way. It is used by one goroutine.
type repair struct {
	opt      Options
	report   *maintenance.RepairReport
	format   int // of the store before
	journals map[sentinels.RunID]*keptJournal
	offset   uint64 // the largest in the event log that a run knows
	blobs    map[string]bool

	older  map[sentinels.RunID]bool // runs whose summary is from the snapshot
	unsure bool                     // any run may have lost its newest records
	db     *store.DB
	events uint64 // offset of the newest event in the log
}

func newRepair(opt Options, report *maintenance.RepairReport) *repair {
	return &repair{opt: opt, report: report, journals: map[sentinels.RunID]*keptJournal{}, blobs: map[string]bool{}, older: map[sentinels.RunID]bool{}}
}

// build builds the new store in the folder work.
func (r *repair) build(ctx context.Context, work, damaged, base string) error {
	if r.opt.From != "" {
		damaged = ""
	}
	done, err := store.Rebuild(ctx, filepath.Join(work, "store.db"), store.RebuildOptions{
		Damaged: damaged, Base: base, Format: r.format, Skip: []string{r.opt.Layout.RunIndex}, Choose: r.choose,
	})
	if err != nil {
		return err
	}
	// With one meta page the newest commit may be missing as a whole, which no range
	// of keys shows.
	r.unsure = done.OneMeta || damaged == ""
	r.reportBuckets(done)
	// What follows depends on records and not on pages, so it uses the same way as
	// every other write.
	if r.db, err = store.Open(ctx, work, store.Options{}); err != nil {
		return err
	}
	return errors.Join(r.mend(ctx), r.db.Close())
}

func (r *repair) reportBuckets(done store.Rebuilt) {
	for name, b := range done.Buckets {
		if name == r.opt.Layout.Runs {
			for _, key := range b.BaseKeys {
				r.older[sentinels.RunID(key)] = true
			}
		}
		if name != "journal" && name != "store" {
			r.report.Buckets = append(r.report.Buckets, maintenance.RepairedBucket{Name: name, Salvaged: b.Salvaged, FromSnapshot: b.FromBase, Unreadable: b.Damaged, Whole: done.Intact(name)})
		}
	}
	slices.SortFunc(r.report.Buckets, func(a, b maintenance.RepairedBucket) int { return strings.Compare(a.Name, b.Name) })
}

// mend makes summaries and journals agree, and reports what is missing.
func (r *repair) mend(ctx context.Context) error {
	var last *store.Ticket
	enqueue := func(b store.Batch) {
		b.Lazy = true
		last = r.db.Enqueue(b)
	}
	summaries, err := r.summaries()
	if err != nil {
		return err
	}
	// First the runs that have a summary, then those that have only a journal.
	known := map[sentinels.RunID]bool{}
	for _, s := range summaries {
		known[s.ID] = true
		if b, changed := r.mendRun(s, r.journals[s.ID]); changed {
			enqueue(b)
		}
	}
	for id, j := range r.journals {
		if known[id] {
			continue
		}
		r.report.Runs.Rebuilt = append(r.report.Runs.Rebuilt, id)
		if b, changed := r.mendRun(newSummary(id, j), j); changed {
			enqueue(b)
		}
	}
	if err := r.reportMissing(); err != nil {
		return err
	}
	// A run remembers how far it has read the event log. If the end of the log is
	// lost, its offsets would be used again, and the run would skip the new events.
	// So the next event must come after every offset that a run knows.
	if r.events < r.offset {
		put, err := r.opt.Layout.Marker(r.offset)
		if err != nil {
			return err
		}
		enqueue(store.Batch{Puts: []store.Put{put}})
	}
	runs := &r.report.Runs
	for _, list := range [][]sentinels.RunID{runs.FromSnapshot, runs.Cut, runs.Rebuilt, runs.Lost, runs.Paused} {
		slices.Sort(list)
	}
	slices.Sort(r.report.Blobs)
	if last == nil {
		return nil
	}
	return last.Wait(ctx)
}

// summaries returns those that can be decoded and have the id of their key. They
// were not decoded before, and a summary of another run must not replace that run's.
func (r *repair) summaries() (list []summary, err error) {
	err = r.db.Scan(r.opt.Layout.Runs, nil, nil, false, func(key, value []byte) bool {
		var s summary
		if json.Unmarshal(value, &s) == nil && string(key) == string(s.ID) {
			list = append(list, s)
		}
		return true
	})
	return list, err
}
