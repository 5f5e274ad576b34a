package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func ids(t testing.TB, rt *runtime.Runtime, f runtime.RunFilter) []sentinels.RunID {
	t.Helper()
	runs, err := rt.Runs(f)
	if err != nil {
		t.Fatal(err)
	}
	out := []sentinels.RunID{}
	for _, r := range runs {
		out = append(out, r.ID)
	}
	return out
}

const awaiting = `{"name":"%s","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}`

// Every filter gives what picking from the whole list gives, page by page too,
// and an index that is built afterwards gives what one gives that grew.
func TestRunsBySelection(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	for i := range 30 {
		src := fmt.Sprintf(awaiting, []string{"a", "ab", "b"}[i%3])
		if i%4 == 0 {
			src = fmt.Sprintf(`{"name":"%s","steps":[{"type":"call","command":"world/look","value":1}],"loop":{"type":"once"}}`, []string{"a", "ab", "b"}[i%3])
		}
		id := start(t, rt, src, runtime.StartOptions{})
		if i%4 == 0 {
			wait(t, rt, id)
		}
	}
	start(t, rt, family, runtime.StartOptions{})
	until(t, "the family", func() bool {
		return familyRuns(t, rt)["low"].ID != "" && familyRuns(t, rt)["mid"].Status == sentinels.StatusCompleted
	})
	check := func(t *testing.T, rt *runtime.Runtime) {
		all, err := rt.Runs(runtime.RunFilter{})
		if err != nil || len(all) != 33 {
			t.Fatalf("%d runs, %v; want 33", len(all), err)
		}
		if !slices.IsSortedFunc(all, func(x, y runtime.RunInfo) int { return cmpID(y.ID, x.ID) }) {
			t.Fatal("not the newest first")
		}
		top := familyRuns(t, rt)["top"].ID
		filters := map[string]runtime.RunFilter{
			"sentinel":          {Sentinel: "a"},
			"status":            {Status: sentinels.StatusRunning},
			"final status":      {Status: sentinels.StatusCompleted},
			"statuses":          {Statuses: []sentinels.Status{sentinels.StatusRunning, sentinels.StatusPaused}, Sentinel: "ab"},
			"status and others": {Status: sentinels.StatusCompleted, Statuses: []sentinels.Status{sentinels.StatusRunning}},
			"parent":            {Parent: top},
			"root":              {Root: top},
			"since":             {Since: all[10].CreatedAt},
			"since, sentinel":   {Since: all[20].CreatedAt, Sentinel: "b"},
			"unknown sentinel":  {Sentinel: "unknown"},
		}
		for name, f := range filters {
			want := []sentinels.RunID{}
			for _, r := range all {
				statuses := f.Statuses
				if f.Status != "" {
					statuses = append(slices.Clone(statuses), f.Status)
				}
				if (f.Sentinel == "" || f.Sentinel == r.Sentinel) && (f.Parent == "" || f.Parent == r.Parent) && (f.Root == "" || f.Root == r.Root) &&
					(len(statuses) == 0 || slices.Contains(statuses, r.Status)) && !r.CreatedAt.Before(f.Since) {
					want = append(want, r.ID)
				}
			}
			if diff := cmp.Diff(want, ids(t, rt, f)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			paged := []sentinels.RunID{}
			f.Limit = 4
			for page := ids(t, rt, f); len(page) > 0; page = ids(t, rt, f) {
				if len(page) > 4 {
					t.Fatalf("%s: a page of %d", name, len(page))
				}
				paged = append(paged, page...)
				f.Before = page[len(page)-1]
			}
			if diff := cmp.Diff(want, paged); diff != "" {
				t.Errorf("%s, by pages (-want +got):\n%s", name, diff)
			}
		}
	}
	check(t, rt)
	rt.Close()
	snap, old := db.Snapshot(), db.Snapshot()
	var drop store.Batch
	if err := old.Scan("runindex", nil, nil, false, func(key, _ []byte) bool {
		drop.Puts = append(drop.Puts, store.Put{Bucket: "runindex", Key: slices.Clone(key), Delete: true})
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(drop.Puts) == 0 {
		t.Fatal("there is no index")
	}
	if err := old.Enqueue(drop).Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]store.Store{"reopened": snap, "a store without an index": old} {
		t.Run(name, func(t *testing.T) { check(t, open(t, newFakeHost(), db, runtime.Options{})) })
	}
}

func cmpID(a, b sentinels.RunID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// A run is listed from the moment its id is known, also while the disk is slow.
func TestRunsListWhatIsNotDurableYet(t *testing.T) {
	db := &slowStore{Memory: store.NewMemory(), open: make(chan struct{})}
	rt := open(t, newFakeHost(), db, runtime.Options{})
	defer close(db.open)
	var want []sentinels.RunID
	for range 5 {
		want = append([]sentinels.RunID{start(t, rt, fmt.Sprintf(awaiting, "w"), runtime.StartOptions{})}, want...)
	}
	if _, found, err := db.Get("runs", []byte(want[0])); err != nil || found {
		t.Fatalf("the run is in the store already: %v", err)
	}
	if diff := cmp.Diff(want, ids(t, rt, runtime.RunFilter{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:2], ids(t, rt, runtime.RunFilter{Sentinel: "w", Limit: 2})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[2:], ids(t, rt, runtime.RunFilter{Before: want[1]})); diff != "" {
		t.Error(diff)
	}
	if got := ids(t, rt, runtime.RunFilter{Status: sentinels.StatusCompleted}); len(got) != 0 {
		t.Errorf("completed: %v", got)
	}
}

// TestWaitDuringClose: a run that Close has released before its first record was
// committed is not an unknown run. A parent that waits for such a child would fail.
func TestWaitDuringClose(t *testing.T) {
	db := &slowStore{store.NewMemory(), make(chan struct{})}
	rt := open(t, newFakeHost(), db, runtime.Options{})
	id := start(t, rt, fmt.Sprintf(awaiting, "w"), runtime.StartOptions{})
	closed := make(chan error, 1)
	go func() { closed <- rt.Close() }()
	for ctx := within(t); ; time.Sleep(time.Millisecond) {
		_, err := rt.Wait(ctx, id)
		if abi.CodeOf(err) == abi.NotFound || ctx.Err() != nil {
			t.Fatalf("wait for a released run: %v", err)
		}
		if _, err := rt.Status(id); err != nil { // released, and not in the store
			break
		}
	}
	if _, err := rt.Wait(within(t), id); err == nil || abi.CodeOf(err) == abi.NotFound {
		t.Errorf("wait for a released run: %v", err)
	}
	close(db.open)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// slowStore commits nothing, and cannot be closed, until it is opened.
type slowStore struct {
	*store.Memory
	open chan struct{}
}

func (s *slowStore) Enqueue(b store.Batch) *store.Ticket {
	b.Puts = append(slices.Clone(b.Puts), store.Put{Bucket: "slow", Key: []byte("k"), Value: []byte("v"), Check: func([]byte, bool) error {
		<-s.open
		return nil
	}})
	return s.Memory.Enqueue(b)
}

func (s *slowStore) Close() error {
	<-s.open
	return s.Memory.Close()
}

// The sweep of blobs looks into every bucket that the engine has.
func TestEveryBucketIsNamed(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "internal/*/*.go"} {
		some, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	found := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\b[bB]ucket[A-Z]?\w* *= *"(\w+)"`).FindAllSubmatch(src, -1) {
			found++
			if !slices.Contains(runtime.Buckets(), string(m[1])) {
				t.Errorf("%s: bucket %q is not in the list", file, m[1])
			}
		}
	}
	if found == 0 || found != len(runtime.Buckets()) {
		t.Errorf("%d buckets in the source, %d in the list", found, len(runtime.Buckets()))
	}
}

// BenchmarkRunsOfSentinel lists the newest 50 runs of a sentinel among 100,000.
func BenchmarkRunsOfSentinel(b *testing.B) {
	rt, err := runtime.Open(context.Background(), runtime.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { rt.Close() })
	if err := runtime.StoreRuns(rt, 100_000, func(i int) runtime.RunInfo {
		return runtime.RunInfo{Sentinel: sentinels.ID(fmt.Sprintf("s%d", i%1000)), Status: sentinels.StatusCompleted, CreatedAt: time.Now()}
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, err := rt.Runs(runtime.RunFilter{Sentinel: "s7", Limit: 50}); err != nil || len(got) != 50 {
			b.Fatal(len(got), err)
		}
	}
}
