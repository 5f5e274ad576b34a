package runtime_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// signed is a fire of a signed request.
func signed(replay, key string) triggers.Firing {
	return triggers.Firing{Key: key, Replay: replay, ReplayFor: time.Hour}
}

// A signed request starts at most one run within its window, whatever keys its
// repetitions bring, also after a restart.
func TestReplay(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.save(t, "a", `"trigger":[{"type":"test","allowConcurrent":true},{"type":"test","tag":"x","allowConcurrent":true}]`)
	first := s.fire(t, "a", 0, signed("s", ""))
	if first.Outcome != triggers.Started {
		t.Fatalf("%+v", first)
	}
	repeated := func(s serving) {
		t.Helper()
		for _, key := range []string{"", "k", "another"} {
			adm := s.fire(t, "a", 0, signed("s", key))
			if adm.Outcome != triggers.Duplicate || adm.Run != first.Run || !strings.Contains(adm.Reason, "the same signed request was started less than 1h") {
				t.Errorf("with key %q: %+v", key, adm)
			}
		}
	}
	repeated(s)
	if adm := s.fire(t, "a", 0, signed("other", "")); adm.Outcome != triggers.Started {
		t.Errorf("another request: %+v", adm)
	}
	if adm := s.fire(t, "a", 1, signed("s", "")); adm.Outcome != triggers.Started {
		t.Errorf("another trigger: %+v", adm)
	}
	snap := db.Snapshot()
	s.Close()
	s = serve(t, snap, runtime.Options{})
	repeated(s)
	if i := s.info(t, "a", 0); i.Duplicates != 6 || i.Started != 2 {
		t.Errorf("%+v", i.Counts)
	}
}

// After its window a request is new, and its record goes.
func TestReplayWindow(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.save(t, "a", `"trigger":{"type":"test","allowConcurrent":true}`)
	short := func(n int) triggers.Firing {
		return triggers.Firing{Replay: fmt.Sprint("s", n), ReplayFor: time.Millisecond}
	}
	for n := range 5 {
		if adm := s.fire(t, "a", 0, short(n)); adm.Outcome != triggers.Started {
			t.Errorf("%d: %+v", n, adm)
		}
	}
	time.Sleep(5 * time.Millisecond)
	if adm := s.fire(t, "a", 0, short(0)); adm.Outcome != triggers.Started {
		t.Errorf("after its window: %+v", adm)
	}
	time.Sleep(5 * time.Millisecond)
	for n := range 6 {
		s.fire(t, "a", 0, triggers.Firing{Replay: fmt.Sprint("new", n), ReplayFor: time.Millisecond})
		time.Sleep(5 * time.Millisecond)
	}
	pairs := 0
	if err := db.Scan("triggerkeys", nil, nil, false, func([]byte, []byte) bool { pairs++; return true }); err != nil || pairs > 4 {
		t.Errorf("%d pairs are kept, %v", pairs, err)
	}
}

// A request that waits in the queue or for quiet is known too, and by its run once
// it has one.
func TestReplayOfWaitingFire(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "a", `"concurrency":"queue","trigger":{"type":"test"}`)
	first := s.fire(t, "a", 0, triggers.Firing{Event: fired(1).Event})
	f := signed("s", "")
	f.Event = fired(2).Event
	if adm := s.fire(t, "a", 0, f); adm.Outcome != triggers.Queued {
		t.Fatalf("%+v", adm)
	}
	if adm := s.fire(t, "a", 0, f); adm.Outcome != triggers.Duplicate || adm.Run != "" {
		t.Errorf("while it waits: %+v", adm)
	}
	s.end(t, first.Run)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		adm := s.fire(t, "a", 0, f)
		if adm.Outcome != triggers.Duplicate {
			t.Fatalf("%+v", adm)
		}
		if adm.Run != "" {
			if n := s.number(t, adm.Run); n != 2 {
				t.Errorf("it names the run of %d", n)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the queued request gets no run")
		}
	}
}
