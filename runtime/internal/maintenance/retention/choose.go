package retention

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/share"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A keptRun is what retention keeps in memory of a stored run. There may be a
// hundred thousand of them.
type keptRun struct {
	id       sentinels.RunID
	sentinel sentinels.ID
	owner    string   // agent or model, "" for a person
	above    *keptRun // nil for a root, and if retention has removed the run above
	below    []*keptRun
	over     bool // it and all runs below it have ended
	final    bool
	failed   bool
	ended    time.Time // the newest end in its tree
	keys     [][]byte
	removed  bool
}

func (r *keptRun) walk(fn func(*keptRun)) {
	fn(r)
	for _, c := range r.below {
		c.walk(fn)
	}
}

// read reads the summary of every run. A run whose summary cannot be read is kept,
// and so are the runs above it.
func (p *pruning) read() error {
	parents := map[*keptRun]sentinels.RunID{}
	err := p.Store.Scan(p.Layout.Runs, nil, nil, false, func(key, value []byte) bool {
		r := &keptRun{id: sentinels.RunID(key)}
		if parent := p.decode(r, value); parent != "" {
			parents[r] = parent
		}
		r.over = r.final
		p.runs[r.id] = r
		p.all = append(p.all, r)
		return true
	})
	if err != nil {
		return err
	}
	for r, id := range parents {
		if up := p.runs[id]; up != nil {
			r.above = up
			up.below = append(up.below, r)
		}
	}
	for _, r := range p.all {
		for up := r; up != nil; up = up.above {
			if !r.final {
				up.over = false
			}
			if r.ended.After(up.ended) {
				up.ended = r.ended
			}
		}
	}
	return nil
}

// decode reads a summary into r and returns the run's parent, "" for none.
func (p *pruning) decode(r *keptRun, value []byte) (parent sentinels.RunID) {
	var summary struct {
		Run
		By        string    `json:"by"`
		UpdatedAt time.Time `json:"updatedAt"`
		EndedAt   time.Time `json:"endedAt"`
	}
	if json.Unmarshal(value, &summary) != nil {
		return ""
	}
	r.sentinel, r.owner, r.ended = summary.Sentinel, summary.By, summary.EndedAt
	r.final = summary.Status.Final() && !p.Executing(r.id)
	if r.ended.IsZero() {
		r.ended = summary.UpdatedAt
	}
	switch summary.Status {
	case sentinels.StatusFailed, sentinels.StatusTimedOut:
		r.failed = true
	}
	return summary.Parent
}

// choose returns the roots of the trees to remove.
func (p *pruning) choose(ctx context.Context) ([]*keptRun, error) {
	roots, err := p.roots()
	if err != nil {
		return nil, err
	}
	// The first to remove is first: a failure counts as if it were younger.
	sort.SliceStable(roots, func(i, j int) bool { return p.age(roots[i]) > p.age(roots[j]) })
	left := roots[:0:0]
	var removed []*keptRun
	surplus := p.surplus(roots)
	for i, r := range roots {
		if p.old(r) || surplus[i] {
			removed = append(removed, r)
		} else {
			left = append(left, r)
		}
	}
	if p.keep.MaxBytes <= 0 {
		return removed, nil
	}
	large, err := p.beyondBytes(ctx, left)
	return append(removed, large...), err
}

// old reports whether a tree is older than allowed.
func (p *pruning) old(r *keptRun) bool { return p.keep.MaxAge > 0 && p.age(r) > p.keep.MaxAge }

// surplus reports for each root whether it is beyond MaxRuns of its sentinel: the owner with the
// most runs loses its oldest first. Failures are counted by themselves.
func (p *pruning) surplus(roots []*keptRun) []bool {
	type group struct {
		sentinel sentinels.ID
		failed   bool
	}
	groups := map[group][]share.Item[int]{}
	for i, r := range roots {
		if !p.old(r) {
			g := group{r.sentinel, r.failed}
			groups[g] = append(groups[g], share.Item[int]{Value: i, Owner: r.owner, Size: 1})
		}
	}
	surplus := make([]bool, len(roots))
	for g, items := range groups {
		most := float64(p.keep.MaxRuns)
		if g.failed {
			most *= p.keep.KeepFailed
		}
		if most <= 0 {
			continue
		}
		for _, i := range share.Beyond(items, int64(most), int64(most/2)) {
			surplus[i] = true
		}
	}
	return surplus
}

// age is the time since the end of a tree. That of a failure counts as shorter.
func (p *pruning) age(r *keptRun) time.Duration {
	age := p.now.Sub(r.ended)
	if r.failed {
		age = time.Duration(float64(age) / p.keep.KeepFailed)
	}
	return age
}

// roots returns those of the largest trees that may be removed.
func (p *pruning) roots() ([]*keptRun, error) {
	var roots []*keptRun
	iterationEnds := map[*keptRun]time.Time{}
	for _, r := range p.all {
		if !r.over || r.above != nil && r.above.over {
			continue
		}
		if up := r.above; up != nil && !up.final {
			end, known := iterationEnds[up]
			if !known {
				var err error
				if end, err = p.iterationEnd(up.id); err != nil {
					return nil, err
				}
				iterationEnds[up] = end
			}
			if !r.ended.Before(end) {
				continue
			}
		}
		roots = append(roots, r)
	}
	return roots, nil
}

// errFirst ends the reading of a journal after one record.
var errFirst = errors.New("first record read")

// iterationEnd returns when the newest iteration of an active run ended; zero if
// none has.
func (p *pruning) iterationEnd(id sentinels.RunID) (at time.Time, err error) {
	raw, found, err := p.Store.Get(p.Layout.Runs, []byte(id))
	if err != nil || !found {
		return at, err
	}
	var summary struct {
		Snapshot uint64 `json:"snapshot"` // number of the newest iteration.end
	}
	if json.Unmarshal(raw, &summary) != nil || summary.Snapshot == 0 {
		return at, nil // a summary that cannot be read keeps what is below it
	}
	err = p.Store.Journal(string(id), summary.Snapshot, func(_ uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err == nil && rec.IterationEnd != nil {
			at = time.UnixMicro(rec.Time)
		}
		return errFirst
	})
	if errors.Is(err, errFirst) {
		err = nil
	}
	return at, err
}

// beyondBytes returns what must be removed so that no more than MaxBytes are left. The owner with
// the most loses its runs in the order of left.
func (p *pruning) beyondBytes(ctx context.Context, left []*keptRun) ([]*keptRun, error) {
	items := make([]share.Item[*keptRun], len(left))
	for i, root := range left {
		var err error
		items[i] = share.Item[*keptRun]{Value: root, Owner: root.owner}
		root.walk(func(r *keptRun) {
			if err != nil {
				return
			}
			if err = context.Cause(ctx); err == nil {
				var n int64
				n, err = p.size(r.id)
				items[i].Size += n
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return share.Beyond(items, p.keep.MaxBytes, p.keep.MaxBytes/2), nil
}

// size returns the size of a run: its records and result, and the blobs that they
// name.
func (p *pruning) size(id sentinels.RunID) (n int64, err error) {
	blobs := map[digest]bool{}
	add := func(raw []byte) {
		n += int64(len(raw))
		eachDigest(raw, func(d digest) { blobs[d] = true })
	}
	if err := p.Store.Journal(string(id), 1, func(_ uint64, raw []byte) error { add(raw); return nil }); err != nil {
		return 0, err
	}
	result, _, err := p.Store.Get(p.Layout.Results, []byte(id))
	if err != nil {
		return 0, err
	}
	add(result)
	sizer, ok := p.Store.(BlobSizer)
	if !ok {
		return n, nil
	}
	for d := range blobs {
		if size, err := sizer.BlobSize(d.String()); err == nil { // otherwise the digest is not that of a blob
			n += size
		}
	}
	return n, nil
}
