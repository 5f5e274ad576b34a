package runtime_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// counted is what Totals should say, from every run there is.
func counted(t *testing.T, rt *runtime.Runtime, id sentinels.ID) (want runtime.RunTotals) {
	t.Helper()
	all, err := rt.Runs(runtime.RunFilter{Sentinel: id})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if i == 0 {
			want.Newest, want.NewestAt = r.ID, r.CreatedAt
			if !r.Status.Final() {
				want.Status = r.Status
			}
		}
		want.Runs++
		if r.Status.Final() {
			want.Over++
			want.Elapsed += time.Duration(r.Elapsed) * time.Millisecond
		}
	}
	return want
}

func checkTotals(t *testing.T, rt *runtime.Runtime, list ...sentinels.ID) {
	t.Helper()
	for _, id := range list {
		got, err := rt.Totals(id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(counted(t, rt, id), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

const (
	totalled = `{"id":"totalled","name":"totalled","steps":[{"type":"call","command":"world/act","value":1}],"loop":{"type":"once"}}`
	lasting  = `{"id":"lasting","name":"lasting","steps":[{"type":"pause","durationMs":3600000}],"loop":{"type":"once"}}`
)

// What is kept in memory is what the store says, whenever it was built: before
// runs began, while they wait, after a restart, when retention took the newest.
func TestTotals(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	list := []sentinels.ID{"totalled", "lasting", "unknown"}
	checkTotals(t, rt, list...)
	for range 3 {
		wait(t, rt, start(t, rt, totalled, runtime.StartOptions{}))
	}
	one := start(t, rt, lasting, runtime.StartOptions{})
	checkTotals(t, rt, list...)
	if err := rt.Pause(within(t), one, ""); err != nil {
		t.Fatal(err)
	}
	checkTotals(t, rt, list...)
	if got, err := rt.Totals("lasting"); err != nil || got.Status != sentinels.StatusPaused || got.Runs != 1 || got.Over != 0 {
		t.Errorf("%+v, %v: want one run, paused", got, err)
	}
	if err := rt.Stop(within(t), one); err != nil {
		t.Fatal(err)
	}
	checkTotals(t, rt, list...)
	two := start(t, rt, lasting, runtime.StartOptions{})
	if got, err := rt.Totals("lasting"); err != nil || got.Newest != two || got.Over != 1 {
		t.Errorf("%+v, %v: want %s as the newest of two", got, err, two)
	}
	prune(t, rt, runtime.Retention{MaxRuns: 1})
	checkTotals(t, rt, list...)
	if got, err := rt.Totals("totalled"); err != nil || got.Runs != 1 {
		t.Errorf("%+v, %v: want the one run that is kept", got, err)
	}
	prune(t, rt, runtime.Retention{MaxAge: time.Nanosecond, KeepFailed: 1})
	checkTotals(t, rt, list...)
	if got, err := rt.Totals("totalled"); err != nil || got != (runtime.RunTotals{}) {
		t.Errorf("%+v, %v: want nothing of a sentinel without runs", got, err)
	}
}

// A run that no process executes ends by what is written behind it.
func TestTotalsOfStoredRuns(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	statuses := []sentinels.Status{sentinels.StatusCompleted, sentinels.StatusFailed, sentinels.StatusPaused}
	if err := runtime.StoreRuns(rt, 30, func(i int) runtime.RunInfo {
		return runtime.RunInfo{Sentinel: "stored", Status: statuses[i%len(statuses)], Elapsed: int64(i), CreatedAt: time.Now()}
	}); err != nil {
		t.Fatal(err)
	}
	checkTotals(t, rt, "stored")
	if got, err := rt.Totals("stored"); err != nil || got.Over != 20 || got.Status != sentinels.StatusPaused {
		t.Errorf("%+v, %v: want 20 of 30 over, the newest paused", got, err)
	}
	paused, err := rt.Runs(runtime.RunFilter{Sentinel: "stored", Status: sentinels.StatusPaused, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Stop(within(t), paused[0].ID); err != nil {
		t.Fatal(err)
	}
	checkTotals(t, rt, "stored")
}

// Runs begin, end and are removed while the totals are built and read.
func TestTotalsHammer(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	if err := runtime.StoreRuns(rt, 2000, func(i int) runtime.RunInfo {
		return runtime.RunInfo{Sentinel: "totalled", Status: sentinels.StatusCompleted, Elapsed: 1, CreatedAt: time.Now(), EndedAt: time.Now()}
	}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var begun []sentinels.RunID
	def := decode(t, rt, totalled)
	for range 4 {
		wg.Go(func() {
			for range 20 {
				id, err := rt.Start(t.Context(), def, runtime.StartOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				begun = append(begun, id)
				mu.Unlock()
				if rand.N(2) == 0 {
					_, _ = rt.Wait(t.Context(), id) // it may have been removed already
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 5 {
			if _, err := rt.Prune(t.Context(), runtime.Retention{MaxRuns: 1500 - 200*i}); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for range 50 {
				if got, err := rt.Totals("totalled"); err != nil || got.Runs < got.Over || got.Over < 0 {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range begun {
		_, _ = rt.Wait(t.Context(), id)
	}
	checkTotals(t, rt, "totalled")
}
