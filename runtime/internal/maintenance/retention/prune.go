package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// defaultSweepInterval is the least time between two sweeps of blobs. A blob is
// safe from the next sweep after it was put, and must be named before the one
// after. It is no setting: hosts prune less often.
const defaultSweepInterval = time.Minute

// removeAtOnce is how many runs are removed in one commit; other commits wait for
// it.
const removeAtOnce = 32

// Options configure a [Pruner]. All but SweepInterval are required.
type Options struct {
	Store  Store
	Layout Layout
	// Executing reports whether this process executes a run. Such a run has not
	// ended, whatever its summary says: its end may not be reported yet.
	Executing func(id sentinels.RunID) bool
	// Digests returns digests of blobs that are in use and that the store may not
	// name.
	Digests func() []string
	// Await waits for a commit on behalf of the caller of Prune.
	Await func(ctx context.Context, t *store.Ticket) error
	// TreeUsage returns what a run that has ended and the runs below it have cost.
	// SpentBelow returns the part that is noted for runs that were removed.
	TreeUsage  func(id sentinels.RunID) (sentinels.Usage, error)
	SpentBelow func(id sentinels.RunID) (sentinels.Usage, error)
	// Unindex returns the puts that remove a run that has ended from the index.
	Unindex func(r Run) []store.Put
	// Forget is called for each run whose removal is durable, also when the caller
	// of Prune has given up. It must not block. It may be called twice.
	Forget func(sentinel sentinels.ID, id sentinels.RunID)
	// SweepInterval is the least time between two sweeps of blobs. Default one
	// minute.
	SweepInterval time.Duration
}

// Store is what retention needs of the engine's store. If it has the methods of
// [Sweeper] and [BlobSizer] too, they are used.
type Store interface {
	Enqueue(b store.Batch) *store.Ticket
	Journal(run string, from uint64, fn func(seq uint64, record []byte) error) error
	Get(bucket string, key []byte) (value []byte, found bool, err error)
	Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error
}

// Sweeper is a store that can delete blobs.
type Sweeper interface {
	SweepBlobs(keep func(digest string) bool) (removed int, bytes int64, err error)
}

// BlobSizer is a store that knows the size of a blob without reading it.
type BlobSizer interface {
	BlobSize(digest string) (int64, error)
}

// A Layout names the buckets of the engine.
type Layout struct {
	Runs      string   // run id -> summary
	Results   string   // run id -> result
	Spent     string   // run id -> what removed runs below it have cost
	StartKeys string   // start key -> run id
	All       []string // every bucket whose pairs may name a blob
}

// A Run is what retention knows of a run that it removes.
type Run struct {
	ID       sentinels.RunID  `json:"id"`
	Sentinel sentinels.ID     `json:"sentinel"`
	Parent   sentinels.RunID  `json:"parent"`
	Status   sentinels.Status `json:"status"`
}

// A Pruner removes runs that have ended.
//
// # Concurrency
//
// Safe for concurrent use. One Prune executes at a time, while runs start and end.
type Pruner struct {
	opt Options

	mu    sync.Mutex // held by a Prune
	swept time.Time  // newest sweep of blobs
}

// New returns a pruner. It has no goroutine and needs no end.
func New(opt Options) *Pruner {
	if opt.SweepInterval <= 0 {
		opt.SweepInterval = defaultSweepInterval
	}
	return &Pruner{opt: opt}
}

// Hold keeps runs and blobs from being removed until release is called. It waits for a
// [Pruner.Prune] that is under way.
func (p *Pruner) Hold() (release func()) {
	p.mu.Lock()
	return p.mu.Unlock
}

// Prune removes what is kept of runs that have ended, beyond the bounds of keep,
// and the blobs that nothing names then. The result is exact even with an error.
func (p *Pruner) Prune(ctx context.Context, keep maintenance.Retention) (maintenance.Pruned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	if keep.KeepFailed == 0 {
		keep.KeepFailed = 3
	}
	keep.KeepFailed = max(keep.KeepFailed, 1)
	one := &pruning{p: p, Options: &p.opt, keep: keep, now: began, runs: map[sentinels.RunID]*keptRun{}}
	err := one.execute(ctx)
	one.out.Took = time.Since(began)
	if err != nil {
		err = fmt.Errorf("prune: %w", err)
	}
	return one.out, err
}

// A pruning is one execution of Prune.
type pruning struct {
	p *Pruner
	*Options
	keep maintenance.Retention
	now  time.Time
	runs map[sentinels.RunID]*keptRun
	all  []*keptRun // oldest first
	out  maintenance.Pruned
}

func (p *pruning) execute(ctx context.Context) error {
	if err := p.read(); err != nil {
		return err
	}
	removed, err := p.choose(ctx)
	if err != nil {
		return err
	}
	p.out.Kept = len(p.all)
	if err := p.remove(ctx, removed); err != nil {
		return err
	}
	return p.sweep(ctx)
}

// remove removes the trees below the given roots.
func (p *pruning) remove(ctx context.Context, roots []*keptRun) error {
	if len(roots) == 0 {
		return nil
	}
	for _, root := range roots {
		root.walk(func(r *keptRun) { r.removed = true })
	}
	if err := p.readKeys(); err != nil {
		return err
	}
	for len(roots) > 0 {
		before := p.out
		b, runs, rest, err := p.nextBatch(roots)
		if err != nil {
			return err
		}
		roots = rest
		if err := p.commit(ctx, b, runs); err != nil {
			removed := p.out.Runs - before.Runs
			p.out = before // it is not known whether they are removed
			return fmt.Errorf("remove %d runs: %w", removed, err)
		}
		p.out.Kept -= len(runs)
		if p.keep.Removed == nil {
			continue
		}
		ids := make([]sentinels.RunID, len(runs))
		for i, r := range runs {
			ids[i] = r.id
		}
		if err := p.keep.Removed(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

// nextBatch returns the batch that removes the first trees, their runs, and the
// trees that are left.
func (p *pruning) nextBatch(roots []*keptRun) (b store.Batch, runs, rest []*keptRun, err error) {
	spent := map[sentinels.RunID]sentinels.Usage{}
	for len(roots) > 0 && len(runs) < removeAtOnce {
		root := roots[0]
		roots = roots[1:]
		if root.above != nil {
			if err := p.charge(root, spent); err != nil {
				return b, nil, nil, err
			}
		}
		root.walk(func(r *keptRun) {
			if err == nil {
				err = p.add(r, &b)
			}
			runs = append(runs, r)
		})
		if err != nil {
			return b, nil, nil, err
		}
	}
	for id, u := range spent {
		value, err := json.Marshal(u)
		if err != nil {
			return b, nil, nil, err
		}
		b.Puts = append(b.Puts, store.Put{Bucket: p.Layout.Spent, Key: []byte(id), Value: value})
	}
	return b, runs, roots, nil
}

func (p *pruning) commit(ctx context.Context, b store.Batch, runs []*keptRun) error {
	ticket := p.Store.Enqueue(b)
	ticket.OnDone(func(err error) { // even if the caller has given up
		if err == nil {
			p.forget(runs)
		}
	})
	if err := p.Await(ctx, ticket); err != nil {
		return err
	}
	p.forget(runs) // waiters for the ticket may be notified before its callbacks
	return nil
}

func (p *pruning) forget(runs []*keptRun) {
	for _, r := range runs {
		p.Forget(r.sentinel, r.id)
	}
}

// charge adds what a tree has cost that is removed to the run above it.
func (p *pruning) charge(root *keptRun, spent map[sentinels.RunID]sentinels.Usage) error {
	above := root.above.id
	sum, ok := spent[above]
	if !ok {
		var err error
		if sum, err = p.SpentBelow(above); err != nil {
			return err
		}
	}
	usage, err := p.TreeUsage(root.id)
	if err != nil {
		return err
	}
	sum.Add(usage)
	spent[above] = sum
	return nil
}

// add adds to b what removes a run, and counts it.
func (p *pruning) add(r *keptRun, b *store.Batch) error {
	raw, found, err := p.Store.Get(p.Layout.Runs, []byte(r.id))
	if err != nil || !found {
		return err
	}
	var summary Run
	if err := json.Unmarshal(raw, &summary); err != nil {
		return fmt.Errorf("read run %s: %w", r.id, err)
	}
	err = p.Store.Journal(string(r.id), 1, func(_ uint64, raw []byte) error {
		p.out.Records++
		p.out.Bytes += int64(len(raw))
		return nil
	})
	if err != nil {
		return err
	}
	result, _, err := p.Store.Get(p.Layout.Results, []byte(r.id))
	if err != nil {
		return err
	}
	p.out.Bytes += int64(len(result))
	p.out.Runs++
	p.out.Keys += len(r.keys)
	b.Trims = append(b.Trims, store.Trim{Run: string(r.id), To: store.All})
	b.Puts = append(b.Puts, p.Unindex(summary)...)
	for _, bucket := range []string{p.Layout.Runs, p.Layout.Results, p.Layout.Spent} {
		b.Puts = append(b.Puts, store.Put{Bucket: bucket, Key: []byte(r.id), Delete: true})
	}
	for _, key := range r.keys {
		b.Puts = append(b.Puts, store.Put{Bucket: p.Layout.StartKeys, Key: key, Delete: true})
	}
	return nil
}

// readKeys finds the start keys of the runs that are removed.
func (p *pruning) readKeys() error {
	return p.Store.Scan(p.Layout.StartKeys, nil, nil, false, func(key, value []byte) bool {
		if r := p.runs[sentinels.RunID(value)]; r != nil && r.removed {
			r.keys = append(r.keys, append([]byte(nil), key...))
		}
		return true
	})
}
