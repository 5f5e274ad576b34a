package dispatch_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

var errClosed = errors.New("closed")

// TestLifeCycle: Disarm and Close may come first and twice; after Close nothing can
// be armed.
func TestLifeCycle(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.Disarm()
	h.arm(t, "s", "", `{}`)
	if i := h.info(t, "s"); !i.Armed {
		t.Errorf("%+v", i)
	}
	h.Disarm()
	h.Disarm()
	if i := h.info(t, "s"); i.Armed {
		t.Errorf("%+v", i)
	}
	h.arm(t, "s", "", `{}`)
	h.set(&h.closed, errClosed)
	h.Close()
	h.Close()
	if err := h.Arm(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("armed after Close: %v", err)
	}
}

// TestUnfinishedRunsCount: a run of an earlier process counts as active, and a child
// run does not.
func TestUnfinishedRunsCount(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", "", `{}`)
	first := h.fire(t, "s", firing("a"))
	h.Close()

	next := newHarness(t, h.db.Snapshot())
	old, _ := h.runs.Run(first.Run)
	next.runs.runs["old"] = old
	child := old
	child.Sentinel, child.Child = "t", true
	next.runs.runs["child"] = child
	next.defs.save("t", "", `{}`)
	next.arm(t, "s", "", `{}`)
	if adm := next.fire(t, "s", firing("b")); adm.Outcome != "skipped" || adm.Reason != "run old is running" {
		t.Errorf("%+v", adm)
	}
	if adm := next.fire(t, "t", firing("b")); adm.Outcome != "started" {
		t.Errorf("%+v", adm)
	}
	if err := next.runs.end("old", sentinels.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	if adm := next.fire(t, "s", firing("c")); adm.Outcome != "started" {
		t.Errorf("%+v", adm)
	}
}

// TestSkipWaitsForEnds: a run whose end is decided, but not durable yet, is no reason to
// skip a firing: the firing starts when it is. A further one is skipped meanwhile.
func TestSkipWaitsForEnds(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", "", `{}`)
	first := h.fire(t, "s", firing("a"))
	durable, err := h.runs.decide(first.Run, sentinels.StatusCompleted)
	if err != nil {
		t.Fatal(err)
	}
	if adm := h.fire(t, "s", firing("b")); adm.Outcome != triggers.Queued || adm.Reason != "run "+string(first.Run)+" is ending" {
		t.Errorf("%+v", adm)
	}
	if adm := h.fire(t, "s", firing("c")); adm.Outcome != triggers.Skipped || adm.Reason != "earlier firings are queued" {
		t.Errorf("%+v", adm)
	}
	if n := h.runs.count(); n != 1 {
		t.Errorf("%d runs before the end is durable", n)
	}
	durable()
	eventually(t, "the second run", func() bool { return h.info(t, "s").Started == 2 })
}

// TestLateFiringWaits: after a restart, what happened before it is not skipped for a run
// that the restart interrupted, but starts when that has ended. One firing waits.
func TestLateFiringWaits(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", "", `{}`)
	first := h.fire(t, "s", firing("a"))
	late := firing("late")
	late.At = time.Now()
	h.Close()

	// A planned time that comes just behind the start stands for those of the downtime.
	behind := newHarness(t, h.db.Snapshot())
	behind.runs.runs["old"], _ = h.runs.Run(first.Run)
	behind.arm(t, "s", "", `{}`)
	missed := firing("now")
	missed.Missed = 2
	if adm := behind.fire(t, "s", missed); adm.Outcome != triggers.Queued {
		t.Errorf("with missed occasions: %+v", adm)
	}

	next := newHarness(t, h.db.Snapshot())
	next.runs.runs["old"], _ = h.runs.Run(first.Run)
	next.arm(t, "s", "", `{}`)
	if adm := next.fire(t, "s", firing("now")); adm.Outcome != triggers.Skipped || adm.Reason != "run old is running" {
		t.Errorf("%+v", adm)
	}
	if err := next.Arm(t.Context()); err != nil { // again, as after a plugin was loaded
		t.Fatal(err)
	}
	if adm := next.fire(t, "s", late); adm.Outcome != triggers.Queued || adm.Reason != "run old is running; it began before the restart that made the firing late" {
		t.Errorf("%+v", adm)
	}
	if adm := next.fire(t, "s", late); adm.Outcome != triggers.Skipped || !strings.HasPrefix(adm.Reason, "run old is running; 2 firings in a row") {
		t.Errorf("%+v", adm)
	}
	if err := next.runs.end("old", sentinels.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the late run", func() bool { return next.info(t, "s").Started == 2 })
	if adm := next.fire(t, "s", late); adm.Outcome != triggers.Skipped || !strings.HasSuffix(adm.Reason, " is running") {
		t.Errorf("for a run of this process: %+v", adm)
	}
}

// TestReadMark: a trigger whose pattern matches nothing notes how far it has read,
// so that it does not read that again after a restart. It notes nothing while the
// log moves little.
func TestReadMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		h := newHarness(t, db)
		h.arm(t, "s", "", `{"reads":"rare"}`)
		synctest.Wait()
		commits := func() int { return int(db.Stats().Commits) }
		before := commits()
		h.log.grow(9) // less than a quarter
		time.Sleep(90 * time.Second)
		if n := commits(); n != before {
			t.Errorf("%d commits for nothing", n-before)
		}
		h.log.grow(31)
		time.Sleep(2 * time.Minute)
		if n := commits(); n != before+1 {
			t.Errorf("%d commits, want 1", n-before)
		}
		h.log.grow(5)
		time.Sleep(time.Minute)
		h.Close()               // notes the rest,
		time.Sleep(time.Minute) // in a commit that nothing waits for

		next := newHarness(t, db.Snapshot())
		next.log.grow(45)
		next.arm(t, "s", "", `{"reads":"rare"}`)
		synctest.Wait()
		if at := next.log.read(); at != 45 {
			t.Errorf("it reads from %d, want 45", at)
		}
	})
}
