package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Retention bounds what is kept of runs that are over. A zero field bounds
// nothing.
type Retention struct {
	MaxAge   time.Duration // since a run's end
	MaxRuns  int           // of each sentinel
	MaxBytes int64         // of records and results in all; a value that was put aside counts for every run that has it
	// KeepFailed is how many times as long, and how many times as many, failures
	// are kept: runs that failed or ran into a limit. Of two
	// runs beyond MaxBytes an ended one goes before a failure so many times as
	// old. Values below 1 are 1. Default 3.
	KeepFailed float64
	// Removed is called with runs that are gone for good, so that what others
	// keep of them goes too. It may block; an error ends the pruning. Should the
	// process end before, it is not called again. Default nil.
	Removed func(ctx context.Context, runs []sentinels.RunID) error
}

// Pruned says exactly what a [Runtime.Prune] took.
type Pruned struct {
	Runs      int           `json:"runs"`
	Records   int           `json:"records"`   // of their journals
	Bytes     int64         `json:"bytes"`     // of the records and results
	Keys      int           `json:"keys"`      // start keys
	Blobs     int           `json:"blobs"`     // blobs that no record names any more
	BlobBytes int64         `json:"blobBytes"` // their size
	Swept     bool          `json:"swept"`     // blobs were looked at: at most once a minute
	Kept      int           `json:"kept"`      // runs that are left, those that go on included
	Took      time.Duration `json:"-"`
}

// sweepInterval is the least time between two sweeps of blobs. A blob is safe
// from the next sweep after it was put, and must be named before the one after.
const sweepInterval = time.Minute

// Prune removes what is kept of runs that are over, beyond the bounds of keep:
// their journals, results, summaries and start keys, in commits of a few runs
// each. Then blobs go that nothing names, those that a crash left behind too.
//
// Runs go with those below them, and only when all of these are over. Below a
// run that goes on, only what ended before its newest iteration did goes: its
// own replay may ask for the rest. What the runs cost stays counted.
//
// Prune waits for one that is under way. It may be called while runs start and
// end.
func (rt *Runtime) Prune(ctx context.Context, keep Retention) (Pruned, error) {
	rt.pruning.Lock()
	defer rt.pruning.Unlock()
	began := time.Now()
	if keep.KeepFailed == 0 {
		keep.KeepFailed = 3
	}
	keep.KeepFailed = max(keep.KeepFailed, 1)
	p := &pruner{rt: rt, keep: keep, now: began, runs: map[sentinels.RunID]*keptRun{}}
	err := p.prune(ctx)
	p.out.Took = time.Since(began)
	return p.out, err
}

// A pruner executes one Prune.
type pruner struct {
	rt   *Runtime
	keep Retention
	now  time.Time
	runs map[sentinels.RunID]*keptRun
	all  []*keptRun // the oldest first
	out  Pruned
}

func (p *pruner) prune(ctx context.Context) error {
	if err := p.read(); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	gone, err := p.choose(ctx)
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	p.out.Kept = len(p.all)
	if err := p.remove(ctx, gone); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	if err := p.sweep(ctx); err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	return nil
}

// removeAtOnce is how many runs go in one commit; others wait behind it.
const removeAtOnce = 32

// remove takes the trees of runs below the given ones.
func (p *pruner) remove(ctx context.Context, gone []*keptRun) error {
	if len(gone) == 0 {
		return nil
	}
	for _, top := range gone {
		top.walk(func(r *keptRun) { r.gone = true })
	}
	if err := p.readKeys(); err != nil {
		return err
	}
	for len(gone) > 0 {
		var b store.Batch
		var ids []sentinels.RunID
		var taken []*keptRun
		spent := map[sentinels.RunID]sentinels.Usage{}
		before := p.out
		for len(gone) > 0 && len(ids) < removeAtOnce {
			top := gone[0]
			gone = gone[1:]
			if top.above != nil {
				if err := p.charge(top, spent); err != nil {
					return err
				}
			}
			var bad error
			top.walk(func(r *keptRun) {
				if bad == nil {
					bad = p.take(r, &b)
				}
				ids, taken = append(ids, r.id), append(taken, r)
			})
			if bad != nil {
				return bad
			}
		}
		for id, u := range spent {
			value, err := json.Marshal(u)
			if err != nil {
				return err
			}
			b.Puts = append(b.Puts, store.Put{Bucket: bucketSpent, Key: []byte(id), Value: value})
		}
		ticket := p.rt.db.Enqueue(b)
		ticket.OnDone(func(err error) { // even if the caller has gone
			if err == nil {
				p.uncount(taken)
			}
		})
		if err := p.rt.await(ctx, ticket); err != nil {
			took := p.out
			p.out = before // it is not known to be gone
			return fmt.Errorf("remove %d runs: %w", took.Runs-before.Runs, err)
		}
		p.uncount(taken) // waiters for the receipt may be notified before us
		p.out.Kept -= len(ids)
		if p.keep.Removed != nil {
			if err := p.keep.Removed(ctx, ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// uncount takes runs that are gone out of what their sentinels come to.
func (p *pruner) uncount(gone []*keptRun) {
	for _, r := range gone {
		p.rt.totals.forget(r.sentinel, r.id)
	}
}

// charge notes at the run above what a tree has cost that goes.
func (p *pruner) charge(top *keptRun, spent map[sentinels.RunID]sentinels.Usage) error {
	above := top.above.id
	sum, ok := spent[above]
	if !ok {
		var err error
		if sum, err = p.rt.spentBelow(above); err != nil {
			return err
		}
	}
	info, _, err := p.rt.readInfo(top.id)
	if err != nil {
		return err
	}
	sum.Add(p.rt.treeUsage(info))
	spent[above] = sum
	return nil
}

// take adds to b what makes a run go, and counts it.
func (p *pruner) take(r *keptRun, b *store.Batch) error {
	info, found, err := p.rt.readInfo(r.id)
	if err != nil || !found {
		return err
	}
	err = p.rt.db.Journal(string(r.id), 1, func(_ uint64, raw []byte) error {
		p.out.Records++
		p.out.Bytes += int64(len(raw))
		return nil
	})
	if err != nil {
		return err
	}
	result, _, err := p.rt.db.Get(bucketResults, []byte(r.id))
	if err != nil {
		return err
	}
	p.out.Bytes += int64(len(result))
	p.out.Runs++
	p.out.Keys += len(r.keys)
	b.Trims = append(b.Trims, store.Trim{Run: string(r.id), To: store.All})
	b.Puts = append(b.Puts, forgetPuts(info)...)
	for _, bucket := range []string{bucketRuns, bucketResults, bucketSpent} {
		b.Puts = append(b.Puts, store.Put{Bucket: bucket, Key: []byte(r.id), Delete: true})
	}
	for _, key := range r.keys {
		b.Puts = append(b.Puts, store.Put{Bucket: bucketStartKeys, Key: key, Delete: true})
	}
	return nil
}

// readKeys finds the start keys of the runs that go.
func (p *pruner) readKeys() error {
	return p.rt.db.Scan(bucketStartKeys, nil, nil, false, func(key, value []byte) bool {
		if r := p.runs[sentinels.RunID(value)]; r != nil && r.gone {
			r.keys = append(r.keys, append([]byte(nil), key...))
		}
		return true
	})
}
