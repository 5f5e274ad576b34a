package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

func names(events []sentinels.Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Name+" "+e.ID)
	}
	return out
}

// The log keeps the newest events, says exactly how many a reader has missed,
// and is the same after a restart, also when less is to be kept from then on.
func TestEventLogKeepsTheNewest(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{Limits: runtime.Limits{KeepEvents: 5}})
	for i := range 8 {
		emit(t, rt, []string{"a:x", "b"}[i%2], fmt.Sprint(i))
	}
	check := func(rt *runtime.Runtime, keep int) {
		t.Helper()
		want := []string{"b 3", "a:x 4", "b 5", "a:x 6", "b 7"}[5-keep:]
		got, err := rt.Events("", 100)
		if diff := cmp.Diff(want, names(got)); diff != "" || err != nil {
			t.Errorf("kept (-want +got):\n%s%v", diff, err)
		}
		log := runtime.EventLog(rt)
		if log.Position() != 8 {
			t.Errorf("position %d, want 8", log.Position())
		}
		e, at, lost, err := log.Next(within(t), "a:*", 1)
		if err != nil || e.ID != map[int]string{5: "4", 2: "6"}[keep] || at != map[int]uint64{5: 5, 2: 7}[keep] || lost != 7-keep {
			t.Errorf("behind 1: event %s at %d, %d lost, %v", e.ID, at, lost, err)
		}
		if e, at, lost, err := log.Next(within(t), "**", 7); err != nil || e.ID != "7" || at != 8 || lost != 0 {
			t.Errorf("behind 7: event %s at %d, %d lost, %v", e.ID, at, lost, err)
		}
	}
	check(rt, 5)
	snap := db.Snapshot()
	check(open(t, newFakeHost(), snap, runtime.Options{Limits: runtime.Limits{KeepEvents: 5}}), 5)
	check(open(t, newFakeHost(), snap.Snapshot(), runtime.Options{Limits: runtime.Limits{KeepEvents: 2}}), 2)
}

// A reader that waits sees what passes, so nothing that does not concern it
// counts as lost, however much it is.
func TestWaitingReaderLosesNothing(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{KeepEvents: 3}})
	type got struct {
		id   string
		lost int
		err  error
	}
	found := make(chan got, 1)
	go func() {
		e, _, lost, err := runtime.EventLog(rt).Next(within(t), "wanted", 0)
		found <- got{e.ID, lost, err}
	}()
	until(t, "the reader to wait", func() bool { return runtime.Subscribers(rt) == 1 })
	for i := range 50 {
		emit(t, rt, "other", fmt.Sprint(i))
	}
	emit(t, rt, "wanted", "w")
	if g := <-found; g.id != "w" || g.lost != 0 || g.err != nil {
		t.Errorf("got %+v", g)
	}
	if n := runtime.Subscribers(rt); n != 0 {
		t.Errorf("%d subscribers are left", n)
	}
}

// A reader whose time is over leaves nothing behind.
func TestReaderLeaves(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(5*time.Millisecond, cancel)
	_, _, _, err := runtime.EventLog(rt).Next(ctx, "never", 0)
	if !errors.Is(err, context.Canceled) || runtime.Subscribers(rt) != 0 {
		t.Errorf("%v, %d subscribers are left", err, runtime.Subscribers(rt))
	}
}

// An event that is emitted again is the first one, also after a restart and for
// those who emit it at the same moment; another source's is another event.
func TestEmitTwiceIsOnce(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	first := emit(t, rt, "a", "1")
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() { emit(t, rt, "a", "2") })
	}
	together.Wait()
	again, err := rt.Emit(within(t), sentinels.Event{ID: "1", Name: "a", Source: "test", Data: []byte(`{"n":2}`)})
	if diff := cmp.Diff(first, again); diff != "" || err != nil {
		t.Errorf("again (-first +again):\n%s%v", diff, err)
	}
	if _, err := rt.Emit(within(t), sentinels.Event{ID: "1", Name: "a", Source: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	rt = open(t, newFakeHost(), db.Snapshot(), runtime.Options{})
	emit(t, rt, "a", "1")
	got, err := rt.Events("a", 10)
	if diff := cmp.Diff([]string{"a 1", "a 2", "a 1"}, names(got)); diff != "" || err != nil {
		t.Errorf("log (-want +got):\n%s%v", diff, err)
	}
}

// What a person emits is refused beyond the limit too, with the way it took.
func TestEmitNamesTheCircle(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{Hops: 2}})
	e := sentinels.Event{Name: "go", Hops: 3, Path: []string{"a", "b", "a"}}
	_, err := rt.Emit(within(t), e)
	want := `event "go" would pass through 3 runs, the limit is 2: a chain of events runs in a circle: a -> b -> a`
	if got := abi.As(err); got == nil || got.Code != abi.Limit || got.Message != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Readers at positions of their own each get every event that fits, once and in
// order, while others emit.
func TestEventLogHammer(t *testing.T) {
	const emitters, each, readers = 4, 150, 40
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	var all sync.WaitGroup
	for r := range readers {
		pattern := []string{"load:0", "load:*", "**"}[r%3]
		all.Go(func() {
			want, at, last := emitters*each, uint64(0), map[string]int{}
			if pattern == "load:0" {
				want = each
			}
			for range want {
				e, n, lost, err := runtime.EventLog(rt).Next(within(t), pattern, at)
				if err != nil || lost != 0 || n <= at {
					t.Errorf("reader %d behind %d: %d, %d lost, %v", r, at, n, lost, err)
					return
				}
				var seq int
				fmt.Sscan(string(e.Data), &seq)
				if seq != last[e.Name]+1 {
					t.Errorf("reader %d: %s %d came after %d", r, e.Name, seq, last[e.Name])
				}
				at, last[e.Name] = n, seq
			}
		})
	}
	for i := range emitters {
		all.Go(func() {
			for n := range each {
				if _, err := rt.Emit(within(t), sentinels.Event{Name: fmt.Sprint("load:", i), Data: fmt.Append(nil, n+1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
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
		"closed, with bytes": {false, runtime.Limits{KeepEventBytes: 8 * storedSize(t, "often", "")}},
		"killed, with bytes": {true, runtime.Limits{KeepEventBytes: 8 * storedSize(t, "often", "")}},
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
