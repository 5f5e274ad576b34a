package retention_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/retention"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const day = 24 * time.Hour

// A fixture is a store with runs that no engine has executed.
type fixture struct {
	db        *store.Memory
	opt       retention.Options
	mu        sync.Mutex // Forget is called by the store too
	forgotten []sentinels.RunID
	active    map[sentinels.RunID]bool
	now       time.Time
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{db: store.NewMemory(), active: map[sentinels.RunID]bool{}, now: time.Now()}
	t.Cleanup(func() { f.db.Close() })
	none := func(sentinels.RunID) (sentinels.Usage, error) { return sentinels.Usage{}, nil }
	f.opt = retention.Options{
		Store:     f.db,
		Layout:    retention.Layout{Runs: "runs", Results: "results", Spent: "spent", StartKeys: "keys", All: []string{"runs", "results", "spent", "keys", "other"}},
		Executing: func(id sentinels.RunID) bool { return f.active[id] },
		Digests:   func() []string { return nil },
		Await:     func(ctx context.Context, ticket *store.Ticket) error { return ticket.Wait(ctx) },
		TreeUsage: none, SpentBelow: none,
		Unindex: func(r retention.Run) []store.Put {
			return []store.Put{{Bucket: "other", Key: []byte("index/" + r.ID), Delete: true}}
		},
		Forget: func(_ sentinels.ID, id sentinels.RunID) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !slices.Contains(f.forgotten, id) {
				f.forgotten = append(f.forgotten, id)
			}
		},
	}
	return f
}

func (f *fixture) write(t *testing.T, b store.Batch) {
	t.Helper()
	if err := f.db.Enqueue(b).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) put(t *testing.T, bucket, key, value string) {
	t.Helper()
	f.write(t, store.Batch{Puts: []store.Put{{Bucket: bucket, Key: []byte(key), Value: []byte(value)}}})
}

// add stores a run of a person that ended the given time ago, or was updated then.
func (f *fixture) add(t *testing.T, sentinel sentinels.ID, parent sentinels.RunID, status sentinels.Status, ago time.Duration, snapshot uint64) sentinels.RunID {
	t.Helper()
	return f.addOf(t, "", sentinel, parent, status, ago, snapshot)
}

// addOf is add for a run that counts for an agent.
func (f *fixture) addOf(t *testing.T, by string, sentinel sentinels.ID, parent sentinels.RunID, status sentinels.Status, ago time.Duration, snapshot uint64) sentinels.RunID {
	t.Helper()
	id := sentinels.RunID(uuid.Must(uuid.NewV7()).String())
	at := f.now.Add(-ago)
	summary := map[string]any{"id": id, "sentinel": sentinel, "parent": parent, "status": status, "by": by, "updatedAt": at, "snapshot": snapshot}
	if status.Final() {
		summary["endedAt"] = at
	}
	value, err := json.Marshal(summary)
	if err != nil {
		t.Fatal(err)
	}
	f.put(t, "runs", string(id), string(value))
	f.put(t, "other", "index/"+string(id), "1")
	f.put(t, "keys", "key of "+string(id), string(id))
	return id
}

func (f *fixture) prune(t *testing.T, keep maintenance.Retention) maintenance.Pruned {
	t.Helper()
	out, err := retention.New(f.opt).Prune(t.Context(), keep)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// runs returns the ids of the stored runs, oldest first.
func (f *fixture) runs(t *testing.T) (ids []sentinels.RunID) {
	t.Helper()
	if err := f.db.Scan("runs", nil, nil, false, func(key, _ []byte) bool {
		ids = append(ids, sentinels.RunID(key))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

// The bounds remove the oldest runs of each sentinel, and failures later than
// others. An active run stays, however old it is.
func TestChooses(t *testing.T) {
	ages := []struct {
		sentinel sentinels.ID
		status   sentinels.Status
		days     int
	}{
		{"a", sentinels.StatusRunning, 90}, {"a", sentinels.StatusFailed, 60}, {"a", sentinels.StatusCompleted, 40}, {"b", sentinels.StatusStopped, 35},
		{"a", sentinels.StatusTimedOut, 25}, {"a", sentinels.StatusCompleted, 20}, {"b", sentinels.StatusQuarantined, 15}, {"a", sentinels.StatusCompleted, 10},
		{"a", sentinels.StatusPaused, 9}, {"a", sentinels.StatusFailed, 5}, {"b", sentinels.StatusCompleted, 1},
	}
	for name, tt := range map[string]struct {
		keep maintenance.Retention
		gone []int // by their age in days
	}{
		"no bound":               {maintenance.Retention{}, nil},
		"age":                    {maintenance.Retention{MaxAge: 18 * day}, []int{60, 40, 35, 20}},
		"age, failures the same": {maintenance.Retention{MaxAge: 18 * day, KeepFailed: 1}, []int{60, 40, 35, 25, 20}},
		"count":                  {maintenance.Retention{MaxRuns: 1}, []int{40, 35, 20}},
		"count, failures too":    {maintenance.Retention{MaxRuns: 2, KeepFailed: 1}, []int{60, 40}},
		"both":                   {maintenance.Retention{MaxRuns: 2, MaxAge: 22 * day, KeepFailed: 2}, []int{60, 40, 35}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var all []sentinels.RunID
			for _, a := range ages {
				all = append(all, f.add(t, a.sentinel, "", a.status, time.Duration(a.days)*day, 0))
			}
			var removed []sentinels.RunID
			tt.keep.Removed = func(_ context.Context, runs []sentinels.RunID) error {
				removed = append(removed, runs...)
				return nil
			}
			out := f.prune(t, tt.keep)
			f.mu.Lock()
			defer f.mu.Unlock()
			left := f.runs(t)
			var gone []int
			for i, a := range ages {
				if !slices.Contains(left, all[i]) {
					gone = append(gone, a.days)
				}
			}
			if diff := cmp.Diff(tt.gone, gone); diff != "" {
				t.Errorf("gone (-want +got):\n%s", diff)
			}
			if out.Runs != len(tt.gone) || len(removed) != len(tt.gone) || len(f.forgotten) != len(tt.gone) || out.Kept != len(ages)-len(tt.gone) || out.Keys != len(tt.gone) {
				t.Errorf("%+v, %d removed, %d forgotten", out, len(removed), len(f.forgotten))
			}
		})
	}
}

// A run that this process executes, one without a readable summary, and what is
// above them stay.
func TestKeeps(t *testing.T) {
	f := newFixture(t)
	top := f.add(t, "a", "", sentinels.StatusCompleted, day, 0)
	executing := f.add(t, "a", top, sentinels.StatusCompleted, day, 0)
	f.active[executing] = true
	f.put(t, "runs", "unreadable", "{")
	ended := f.add(t, "a", "", sentinels.StatusCompleted, day, 0)
	if out := f.prune(t, maintenance.Retention{MaxAge: 1}); out.Runs != 1 || slices.Contains(f.runs(t), ended) {
		t.Errorf("%+v", out)
	}
	delete(f.active, executing)
	if out := f.prune(t, maintenance.Retention{MaxAge: 1}); out.Runs != 2 || out.Kept != 1 {
		t.Errorf("%+v", out)
	}
}

// Below an active run, what ended before its newest iteration did is removed, and
// its usage is noted at the active run.
func TestBelowAnActiveRun(t *testing.T) {
	f := newFixture(t)
	end, err := journal.Encode(&journal.Record{Kind: journal.IterationEnd, Time: f.now.Add(-time.Hour).UnixMicro(), IterationEnd: &journal.IterationEndBody{Iteration: 1}})
	if err != nil {
		t.Fatal(err)
	}
	top := f.add(t, "a", "", sentinels.StatusWaiting, 0, 1)
	f.write(t, store.Batch{Appends: []store.Append{{Run: string(top), Seq: 1, Record: end}}})
	before := f.add(t, "a", top, sentinels.StatusCompleted, 2*time.Hour, 0)
	after := f.add(t, "a", top, sentinels.StatusCompleted, time.Minute, 0)
	f.opt.SpentBelow = func(sentinels.RunID) (sentinels.Usage, error) { return sentinels.Usage{Calls: 2}, nil }
	f.opt.TreeUsage = func(sentinels.RunID) (sentinels.Usage, error) { return sentinels.Usage{Calls: 3}, nil }
	f.prune(t, maintenance.Retention{MaxAge: 1})
	if d := cmp.Diff([]sentinels.RunID{top, after}, f.runs(t)); d != "" || slices.Contains(f.runs(t), before) {
		t.Errorf("left: %s", d)
	}
	raw, _, err := f.db.Get("spent", []byte(top))
	var spent sentinels.Usage
	if err != nil || json.Unmarshal(raw, &spent) != nil || spent.Calls != 5 {
		t.Errorf("spent %+v, %v", spent, err)
	}
}

// With a bound in bytes the oldest runs are removed, by the size of their records,
// results and blobs.
func TestBytes(t *testing.T) {
	f := newFixture(t)
	blob, err := f.db.PutBlob([]byte(strings.Repeat("x", 1000)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.put(t, "results", string(f.add(t, "a", "", sentinels.StatusCompleted, day, 0)), blob)
	}
	if out := f.prune(t, maintenance.Retention{MaxBytes: 2200}); out.Runs != 1 || out.Bytes != 64 {
		t.Errorf("%+v", out)
	}
}

// At a bound in bytes or in runs of a sentinel, the owner with the most loses its oldest runs: persons
// lose none to an agent while they have at most half.
func TestOwners(t *testing.T) {
	for name, keep := range map[string]maintenance.Retention{"runs": {MaxRuns: 4}, "bytes": {MaxBytes: 4500}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			add := func(by string, ago int) sentinels.RunID {
				id := f.addOf(t, by, "a", "", sentinels.StatusCompleted, time.Duration(ago)*time.Hour, 0)
				f.put(t, "results", string(id), strings.Repeat("x", 1000))
				return id
			}
			want := []sentinels.RunID{add("", 100), add("agent:b", 99)}
			for i := range 6 {
				add("agent:a", 60-i)
			}
			want = append(want, add("", 10), add("agent:a", 1))
			f.prune(t, keep)
			if diff := cmp.Diff(want, f.runs(t)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			for range 3 {
				want = append(want, add("", 0))
			}
			f.prune(t, keep) // a person's own loss
			if left := f.runs(t); len(left) != 4 || slices.Contains(left, want[0]) {
				t.Errorf("left %v of %v", left, want)
			}
		})
	}
}

// If a commit does not become durable, or the caller's hook fails, the result has
// only what is known to be removed.
func TestFails(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.add(t, "a", "", sentinels.StatusCompleted, day, 0)
	}
	bad := errors.New("bad")
	f.opt.Await = func(context.Context, *store.Ticket) error { return bad }
	out, err := retention.New(f.opt).Prune(t.Context(), maintenance.Retention{MaxRuns: 1})
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), "remove 2 runs") || out.Runs != 0 || out.Keys != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	f = newFixture(t)
	f.add(t, "a", "", sentinels.StatusCompleted, day, 0)
	out, err = retention.New(f.opt).Prune(t.Context(), maintenance.Retention{MaxAge: 1, Removed: func(context.Context, []sentinels.RunID) error { return bad }})
	if !errors.Is(err, bad) || out.Runs != 1 || len(f.runs(t)) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// A blob stays as long as a pair, a journal or the engine names it.
func TestSweep(t *testing.T) {
	f := newFixture(t)
	put := func(text string) string {
		digest, err := f.db.PutBlob([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	pair, record, used, unused := put("pair"), put("record"), put("used"), put("unused")
	run := f.add(t, "a", "", sentinels.StatusRunning, 0, 0)
	f.put(t, "other", "x", "a value with "+pair+" in it")
	f.write(t, store.Batch{Appends: []store.Append{{Run: string(run), Seq: 1, Record: []byte(record)}}})
	f.opt.Digests = func() []string { return []string{used} }
	f.opt.SweepInterval = 1
	p := retention.New(f.opt)
	blobs := 0
	for range 3 { // a new blob is safe from the first
		out, err := p.Prune(t.Context(), maintenance.Retention{})
		if err != nil || !out.Swept {
			t.Fatalf("%+v, %v", out, err)
		}
		blobs += out.Blobs
	}
	if blobs != 1 {
		t.Errorf("%d blobs were deleted, want 1", blobs)
	}
	for digest, want := range map[string]bool{pair: true, record: true, used: true, unused: false} {
		if _, err := f.db.Blob(digest); (err == nil) != want {
			t.Errorf("%s: %v", digest, err)
		}
	}
}

// Two sweeps have a minute between them.
func TestSweepInterval(t *testing.T) {
	p := retention.New(newFixture(t).opt)
	for _, want := range []bool{true, false} {
		if out, err := p.Prune(t.Context(), maintenance.Retention{}); err != nil || out.Swept != want {
			t.Errorf("%+v, %v", out, err)
		}
	}
}

func TestDigests(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for text, want := range map[string]int{
		"": 0, digest: 1, `{"b":"` + digest + `"}`: 1, digest[1:]: 0, strings.ToUpper(digest): 0, digest + " " + digest: 2, digest + "f": 2, "x" + digest[:63] + "x": 0,
	} {
		if got := retention.Digests(text); len(got) != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The oldest iterations are cut beyond a count or a size, never the newest one nor
// the first record.
func TestIterations(t *testing.T) {
	var k retention.Iterations
	if _, _, ok := k.Cut(1000, 1, 1); ok {
		t.Error("none: something is cut")
	}
	for i := range uint64(5) { // each has 10 records of 10 bytes
		k.Add(2+10*i, int64(100*i))
	}
	cut := func(bytes int64, most int, mostBytes int64, want [2]uint64) {
		t.Helper()
		from, to, ok := k.Cut(bytes, most, mostBytes)
		if got := [2]uint64{from, to}; got != want || ok != (to != 0) {
			t.Errorf("cut %v, want %v", got, want)
		}
	}
	cut(500, 5, 500, [2]uint64{})
	cut(500, 4, 500, [2]uint64{2, 11})
	cut(500, 4, 250, [2]uint64{12, 31})
	cut(5000, 1, 1, [2]uint64{32, 41})
	cut(5000, 0, 0, [2]uint64{})
	k = retention.Recovered()
	k.Add(20, 100)
	cut(200, 1, 1000, [2]uint64{2, 19})
}
