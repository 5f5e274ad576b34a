package runtime_test

import (
	"fmt"
	stdruntime "runtime"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestEventStorm emits 200,000 events into triggers that filter, debounce and
// skip. Memory stays within bounds, and the counts of each trigger and what it
// has missed come exactly to the events.
func TestEventStorm(t *testing.T) {
	events := 200_000
	if testing.Short() {
		events = 20_000
	}
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "filters", `"trigger":{"type":"event","event":"storm:*","filter":"$event.n < 0"}`)
	s.save(t, "debounces", `"trigger":{"type":"event","event":"storm:*","debounceMs":50}`)
	s.save(t, "skips", `"trigger":{"type":"event","event":"storm:*"}`)
	s.save(t, "queues", `"concurrency":"queue","trigger":{"type":"event","event":"storm:*"}`)
	s.save(t, "elsewhere", `"trigger":{"type":"event","event":"calm"}`)

	const emitters = 8
	var storm sync.WaitGroup
	for w := range emitters {
		storm.Go(func() {
			for n := range events / emitters {
				e := sentinels.Event{Name: fmt.Sprint("storm:", w), Data: fmt.Appendf(nil, `{"n":%d}`, n)}
				if _, err := s.Emit(t.Context(), e); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	storm.Wait()
	for _, id := range []sentinels.ID{"filters", "debounces", "skips", "queues"} {
		until(t, fmt.Sprint(id, " to have seen the storm"), func() bool {
			i := s.info(t, id, 0)
			return i.Fired+i.Missed == uint64(events)
		})
		i := s.info(t, id, 0)
		sums(t, i)
		t.Logf("%s: %+v, %d wait", id, i.Counts, i.Waiting)
	}
	if i := s.info(t, "filters", 0); i.Filtered != i.Fired {
		t.Errorf("%+v", i)
	}
	if i := s.info(t, "skips", 0); i.Started != 1 || i.Skipped != i.Fired-1 {
		t.Errorf("%+v", i)
	}
	if i := s.info(t, "queues", 0); i.Started != 1 || i.Waiting != 1000 || i.Refused != i.Fired-1001 {
		t.Errorf("%+v", i)
	}
	if i := s.info(t, "elsewhere", 0); i.Fired != 0 || i.Missed != 0 {
		t.Errorf("%+v", i)
	}
	// The log, the keys and the queue are in the store, which here is memory too:
	// 3 x 10,000 keys, twice each, 10,000 events and a queue.
	stdruntime.GC()
	var m stdruntime.MemStats
	stdruntime.ReadMemStats(&m)
	if most := uint64(128 << 20); m.HeapAlloc > most {
		t.Errorf("%d MB in use after the storm, want at most %d", m.HeapAlloc>>20, most>>20)
	}
}
