package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A keptRun is as much of a stored run as retention looks at: a hundred thousand
// of them are held at once.
type keptRun struct {
	id       sentinels.RunID
	sentinel sentinels.ID
	above    *keptRun // nil for a root, and when retention took the run above
	below    []*keptRun
	over     bool // it and all below it
	final    bool
	failed   bool
	ended    time.Time // the newest end in its tree
	keys     [][]byte
	gone     bool
}

func (r *keptRun) walk(fn func(*keptRun)) {
	fn(r)
	for _, c := range r.below {
		c.walk(fn)
	}
}

// read looks at every run of the store. A summary that cannot be read stays, and
// what is above it.
func (p *pruner) read() error {
	parents := map[*keptRun]sentinels.RunID{}
	err := p.rt.db.Scan(bucketRuns, nil, nil, false, func(key, value []byte) bool {
		var info struct {
			Sentinel  sentinels.ID     `json:"sentinel"`
			Parent    sentinels.RunID  `json:"parent"`
			Status    sentinels.Status `json:"status"`
			UpdatedAt time.Time        `json:"updatedAt"`
			EndedAt   time.Time        `json:"endedAt"`
		}
		r := &keptRun{id: sentinels.RunID(key)}
		if json.Unmarshal(value, &info) == nil {
			r.sentinel, r.ended = info.Sentinel, info.EndedAt
			// One whose end this process has yet to tell goes on.
			r.final = info.Status.Final() && p.rt.live(r.id) == nil
			if r.ended.IsZero() {
				r.ended = info.UpdatedAt
			}
			switch info.Status {
			case sentinels.StatusFailed, sentinels.StatusTimedOut:
				r.failed = true
			}
			if info.Parent != "" {
				parents[r] = info.Parent
			}
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

// choose returns the tops of the trees that go.
func (p *pruner) choose(ctx context.Context) ([]*keptRun, error) {
	tops, err := p.tops()
	if err != nil {
		return nil, err
	}
	// The first to go stands first: a failure counts as if it were younger.
	sort.SliceStable(tops, func(i, j int) bool { return p.age(tops[i]) > p.age(tops[j]) })
	left := tops[:0:0]
	var gone []*keptRun
	old := func(r *keptRun) bool { return p.keep.MaxAge > 0 && p.age(r) > p.keep.MaxAge }
	type group struct {
		sentinel sentinels.ID
		failed   bool
	}
	count := map[group]int{}
	surplus := make([]bool, len(tops))
	for i := len(tops) - 1; i >= 0; i-- { // the newest first
		g := group{tops[i].sentinel, tops[i].failed}
		most := float64(p.keep.MaxRuns)
		if g.failed {
			most *= p.keep.KeepFailed
		}
		if !old(tops[i]) {
			count[g]++
		}
		surplus[i] = most > 0 && float64(count[g]) > most
	}
	for i, r := range tops {
		if old(r) || surplus[i] {
			gone = append(gone, r)
		} else {
			left = append(left, r)
		}
	}
	if p.keep.MaxBytes <= 0 {
		return gone, nil
	}
	large, err := p.beyondBytes(ctx, left)
	return append(gone, large...), err
}

// age is how long a tree is over, for a failure as long as it counts.
func (p *pruner) age(r *keptRun) time.Duration {
	age := p.now.Sub(r.ended)
	if r.failed {
		age = time.Duration(float64(age) / p.keep.KeepFailed)
	}
	return age
}

// tops returns the largest trees of which every run is over and may go.
func (p *pruner) tops() ([]*keptRun, error) {
	var tops []*keptRun
	passEnds := map[*keptRun]time.Time{}
	for _, r := range p.all {
		if !r.over || r.above != nil && r.above.over {
			continue
		}
		if up := r.above; up != nil && !up.final {
			end, known := passEnds[up]
			if !known {
				var err error
				if end, err = p.passEnd(up.id); err != nil {
					return nil, err
				}
				passEnds[up] = end
			}
			if !r.ended.Before(end) {
				continue
			}
		}
		tops = append(tops, r)
	}
	return tops, nil
}

// passEnd returns when the newest iteration of a run ended that goes on; zero if
// none has.
func (p *pruner) passEnd(id sentinels.RunID) (at time.Time, err error) {
	info, found, err := p.rt.readInfo(id)
	if err != nil || !found || info.Snapshot == 0 {
		return at, nil //nolint:nilerr // a summary that cannot be read keeps what is below
	}
	err = p.rt.db.Journal(string(id), info.Snapshot, func(_ uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err == nil && rec.IterationEnd != nil {
			at = microTime(rec.Time)
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return at, err
}

// beyondBytes returns what must go, the first of left first, to have no more
// than MaxBytes left.
func (p *pruner) beyondBytes(ctx context.Context, left []*keptRun) ([]*keptRun, error) {
	sizes := make([]int64, len(left))
	var total int64
	for i, top := range left {
		var err error
		top.walk(func(r *keptRun) {
			if err != nil {
				return
			}
			if err = context.Cause(ctx); err == nil {
				var n int64
				n, err = p.size(r.id)
				sizes[i] += n
			}
		})
		if err != nil {
			return nil, err
		}
		total += sizes[i]
	}
	n := 0
	for ; n < len(left) && total > p.keep.MaxBytes; n++ {
		total -= sizes[n]
	}
	return left[:n], nil
}

// size is what a run takes: its records and result, and the values they name.
func (p *pruner) size(id sentinels.RunID) (n int64, err error) {
	blobs := map[blobDigest]bool{}
	add := func(raw []byte) {
		n += int64(len(raw))
		eachDigest(raw, func(d blobDigest) { blobs[d] = true })
	}
	if err := p.rt.db.Journal(string(id), 1, func(_ uint64, raw []byte) error { add(raw); return nil }); err != nil {
		return 0, err
	}
	result, _, err := p.rt.db.Get(bucketResults, []byte(id))
	if err != nil {
		return 0, err
	}
	add(result)
	sizer, ok := p.rt.db.(blobSizer)
	if !ok {
		return n, nil
	}
	for d := range blobs {
		if size, err := sizer.BlobSize(d.String()); err == nil { // else it is a digest of something else
			n += size
		}
	}
	return n, nil
}

// A blobSizer is a store that knows how large a blob is without reading it.
type blobSizer interface {
	BlobSize(digest string) (int64, error)
}
