package dispatch_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
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
