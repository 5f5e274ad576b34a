package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// emit puts an event into the log of rt.
func emit(t testing.TB, rt *runtime.Runtime, name, id string) sentinels.Event {
	t.Helper()
	e, err := rt.Emit(within(t), sentinels.Event{ID: id, Name: name, Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A trigger that waits for a rare event has missed nothing after a restart,
// although the log has dropped what came behind its last event: it was looked at.
func TestRareEventMissesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		crash  bool
		limits runtime.Limits // of 8 events
	}{
		"closed":             {false, runtime.Limits{KeepEvents: 8}},
		"killed":             {true, runtime.Limits{KeepEvents: 8}},
		"closed, with bytes": {false, runtime.Limits{KeepEventBytes: 8 * storedSize(t, "often")}},
		"killed, with bytes": {true, runtime.Limits{KeepEventBytes: 8 * storedSize(t, "often")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := runtime.Options{Limits: tt.limits}
				db := store.NewMemory()
				s := serve(t, db, opt)
				s.saveSteps(t, "a", quick, `"concurrency":"parallel","trigger":{"type":"event","event":"rare"}`)
				emit(t, s.Runtime, "rare", "")
				synctest.Wait() // the storm would outrun it
				for range 3 {
					for range 50 {
						emit(t, s.Runtime, "often", "")
					}
					time.Sleep(2 * time.Minute) // longer than it takes to note how far it has read
					synctest.Wait()
				}
				if tt.crash {
					snap := db.Snapshot()
					s.Close()
					db = snap
				} else {
					emit(t, s.Runtime, "often", "")
					s.Close()
					db = db.Snapshot()
				}
				s = serve(t, db, opt)
				defer s.Close()
				emit(t, s.Runtime, "often", "")
				emit(t, s.Runtime, "rare", "")
				synctest.Wait()
				if i := s.info(t, "a", 0); i.Fired != 2 || i.Missed != 0 {
					t.Errorf("%+v", i)
				}
				s.Disarm() // now it looks at nothing
				for range 10 {
					emit(t, s.Runtime, "often", "")
				}
				emit(t, s.Runtime, "rare", "")
				if err := s.Arm(within(t)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if i := s.info(t, "a", 0); i.Fired != 3 || i.Missed != 3 { // 11 came, 8 are kept
					t.Errorf("%+v", i)
				}
			})
		})
	}
}

// A run that is started by another one's command belongs to the chain of that
// one: its events go on counting, and a circle of starts ends.
func TestChainGoesOnOverStarts(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{Hops: 3}})
	const waits = `{"id":%q,"name":"x","loop":{"type":"once"},"steps":[{"type":"pause","event":"never"}]}`
	run := func(id string, opt runtime.StartOptions) (sentinels.RunID, error) {
		return rt.Start(within(t), decode(t, rt, fmt.Sprintf(waits, id)), opt)
	}
	first, err := run("a", runtime.StartOptions{Event: &sentinels.Event{Name: "e", Hops: 1, Path: []string{"z"}}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the first pass", func() bool { hops, _ := rt.Chain(first); return hops == 2 })
	second, err := run("b", runtime.StartOptions{Starter: first})
	if err != nil {
		t.Fatal(err)
	}
	hops, path := rt.Chain(second)
	if diff := cmp.Diff([]string{"z", "a", "b"}, path); hops != 3 || diff != "" {
		t.Errorf("%d hops (-want +got):\n%s", hops, diff)
	}
	_, err = run("a", runtime.StartOptions{Starter: second})
	want := `sentinel "a" would be run 4 of a chain, the limit is 3: sentinels start each other in a circle: z -> a -> b -> a`
	if e := abi.As(err); e == nil || e.Code != abi.Limit || e.Message != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What a trigger was too slow to see counts as missed, also if it waits for long
// afterwards and the host is killed then.
func TestMissedEventsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := runtime.Options{Limits: runtime.Limits{KeepEvents: 8}}
		db := store.NewMemory()
		s := serve(t, db, opt)
		s.saveSteps(t, "a", quick, `"trigger":{"type":"event","event":"rare"}`)
		s.Disarm()
		for range 20 {
			emit(t, s.Runtime, "rare", "")
		}
		for range 8 {
			emit(t, s.Runtime, "often", "")
		}
		if err := s.Arm(within(t)); err != nil { // all 20 are gone
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(2 * time.Minute)
			emit(t, s.Runtime, "often", "")
			emit(t, s.Runtime, "often", "")
			emit(t, s.Runtime, "often", "")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		snap := db.Snapshot()
		s.Close()
		s = serve(t, snap, opt)
		defer s.Close()
		emit(t, s.Runtime, "rare", "")
		synctest.Wait()
		if i := s.info(t, "a", 0); i.Fired != 1 || i.Missed != 20 {
			t.Errorf("%+v", i)
		}
	})
}

// storedSize is the size in the log of an event that emit emits without an ID.
func storedSize(t *testing.T, name string) int64 {
	t.Helper()
	e := sentinels.Event{ID: strings.Repeat("0", 36), Name: name, Source: "test", Time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(b))
}
