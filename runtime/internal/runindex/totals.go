package runindex

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// totals keep [run.Totals] in memory: lists ask for those of every sentinel, and
// reading every run there ever was for each list takes longer the longer a host
// lives. They are built at the first request, from one read of all runs, and take about 40 bytes a run from then on; who never asks, as a
// foreground run, pays nothing.
//
// Every run has an entry of its own, and each change has what the entry is from
// now on. So a repeated report is harmless, and a change that comes while the
// totals are built counts for more than what the store said of the run before.
//
// # Concurrency
//
// Safe for concurrent use. Changes never wait for the store: they are reported on the
// goroutine that delivers its receipts.
type totals struct {
	building sync.Mutex // held while building

	mu    sync.Mutex
	built bool
	by    map[sentinels.ID]*sentinelTotals // nil until they are built
	newer map[runKeyDigest]struct{}        // while building: runs whose entry is newer than the store
}

// sentinelTotals are those of one sentinel.
type sentinelTotals struct {
	runs    map[runKeyDigest]int64 // elapsed milliseconds, or notOver
	over    int
	elapsed int64
	newest  sentinels.RunID // "" if it has to be looked up: the newest one was removed
	at      time.Time
	changes uint64
}

const notOver = -1

// A runKeyDigest stands for a run's id: 16 bytes in place of 36 and their header.
type runKeyDigest [16]byte

func keyOfRun(id sentinels.RunID) (k runKeyDigest) {
	if digits := strings.ReplaceAll(string(id), "-", ""); len(digits) == 2*len(k) {
		if _, err := hex.Decode(k[:], []byte(digits)); err == nil {
			return k
		}
	}
	sum := sha256.Sum256([]byte(id)) // no id of ours, but two of them still differ
	return runKeyDigest(sum[:])
}

// Began counts a run that begins. It may be called again.
func (x *Index) Began(info run.Info) {
	x.totals.note(info, notOver)
	x.held.began(info)
}

// Ended counts a run whose end is durable. It may be called again.
func (x *Index) Ended(info run.Info) {
	x.totals.note(info, max(0, info.Elapsed))
	x.held.over(info.ID)
}

// Forget takes a run out of all counts, which was removed or whose start was refused.
func (x *Index) Forget(sentinel sentinels.ID, id sentinels.RunID) {
	x.totals.forget(sentinel, id)
	x.held.over(id)
}

func (t *totals) note(info run.Info, elapsed int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil || !info.OfStored() {
		return // a build finds it in the store, or among the fresh runs
	}
	if t.newer != nil {
		t.newer[keyOfRun(info.ID)] = struct{}{}
	}
	t.update(info, elapsed)
}

func (t *totals) forget(sentinel sentinels.ID, id sentinels.RunID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		return
	}
	key := keyOfRun(id)
	if t.newer != nil {
		t.newer[key] = struct{}{}
	}
	s := t.by[sentinel]
	if s == nil {
		return
	}
	s.drop(key)
	s.changes++
	if s.newest == id {
		s.newest = ""
	}
	if len(s.runs) == 0 {
		delete(t.by, sentinel)
	}
}

// update makes the entry of a run. The caller holds mu.
func (t *totals) update(info run.Info, elapsed int64) {
	s := t.by[info.Sentinel]
	if s == nil {
		s = &sentinelTotals{runs: map[runKeyDigest]int64{}}
		t.by[info.Sentinel] = s
	}
	first := len(s.runs) == 0
	key := keyOfRun(info.ID)
	s.drop(key)
	s.changes++
	s.runs[key] = elapsed
	if elapsed != notOver {
		s.over++
		s.elapsed += elapsed
	}
	// Ids are in the order of starts. Where the newest is not known, a run that
	// receives need not be it.
	if first || s.newest != "" && info.ID >= s.newest {
		s.newest, s.at = info.ID, info.CreatedAt
	}
}

// drop takes an entry out, if it is there.
func (s *sentinelTotals) drop(key runKeyDigest) {
	elapsed, ok := s.runs[key]
	if !ok {
		return
	}
	delete(s.runs, key)
	if elapsed != notOver {
		s.over--
		s.elapsed -= elapsed
	}
}

// build looks at all runs once. Summaries that cannot be read are left out and
// are the error, each time until they are gone.
func (x *Index) buildTotals() error {
	t := &x.totals
	t.building.Lock()
	defer t.building.Unlock()
	t.mu.Lock()
	if t.built {
		t.mu.Unlock()
		return nil
	}
	t.by, t.newer = map[sentinels.ID]*sentinelTotals{}, map[runKeyDigest]struct{}{}
	t.mu.Unlock()
	take := func(info run.Info) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, newer := t.newer[keyOfRun(info.ID)]; newer || !info.OfStored() {
			return
		}
		elapsed := int64(notOver)
		if info.Status.Final() {
			elapsed = max(0, info.Elapsed)
		}
		t.update(info, elapsed)
	}
	// Those that began a moment ago may not be in the store yet. They come first:
	// what the store says of them is newer.
	for _, info := range x.opt.Starting() {
		take(info)
	}
	var bad error
	err := x.opt.Store.Scan(x.opt.Summaries, nil, nil, false, func(key, value []byte) bool {
		var info run.Info
		if err := json.Unmarshal(value, &info); err != nil {
			bad = errors.Join(bad, fmt.Errorf("read run %s: %w", key, err))
			return true
		}
		take(info)
		return true
	})
	err = errors.Join(err, bad)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newer = nil
	if err != nil {
		t.by = nil // the next request tries again
	}
	t.built = err == nil
	return err
}

// Totals returns the totals of the runs of a sentinel; zero for one that has
// none. The first call of a process looks at every run there is, later ones at
// none.
func (x *Index) Totals(id sentinels.ID) (run.Totals, error) {
	if err := x.buildTotals(); err != nil {
		return run.Totals{}, fmt.Errorf("count runs: %w", err)
	}
	out, over, changes := x.totals.of(id)
	if out.Runs == 0 || over {
		return out, nil
	}
	if out.Newest != "" {
		if info, active := x.opt.Active(out.Newest); active {
			out.Status = info.Status
			return out, nil
		}
	}
	newest, err := x.List(run.Filter{Sentinel: id, OfStored: true, Limit: 1})
	if err != nil || len(newest) == 0 {
		return out, err
	}
	info := newest[0]
	x.totals.found(info, changes)
	out.Newest, out.NewestAt = info.ID, info.CreatedAt
	if !info.Status.Final() {
		out.Status = info.Status
	}
	return out, nil
}

// of returns what is known without the store, whether the newest run is over,
// and how often anything has changed.
func (t *totals) of(id sentinels.ID) (out run.Totals, over bool, changes uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.by[id]
	if s == nil {
		return out, false, 0
	}
	out = run.Totals{Runs: len(s.runs), Over: s.over, Elapsed: time.Duration(s.elapsed) * time.Millisecond}
	if s.newest != "" {
		out.Newest, out.NewestAt = s.newest, s.at
		over = s.runs[keyOfRun(s.newest)] != notOver
	}
	return out, over, s.changes
}

// found notes which run is the newest, unless something has changed since it was
// looked up: it may be another one by now.
func (t *totals) found(info run.Info, changes uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.by[info.Sentinel]; s != nil && s.changes == changes {
		s.newest, s.at = info.ID, info.CreatedAt
	}
}
