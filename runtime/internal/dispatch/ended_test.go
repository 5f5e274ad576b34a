package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TestTriggerEndsAfterMaxRuns: the trigger starts so many runs, also of those that were queued, and
// none after a restart; another part of the definition may change meanwhile.
func TestTriggerEndsAfterMaxRuns(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapQueue, `{"maxRuns":2}`)
	first := h.fire(t, "s", firing("a"))
	for range 2 {
		h.fire(t, "s", firing("a"))
	}
	if i := h.info(t, "s"); i.Ended != "" || !i.Armed || i.Waiting != 2 {
		t.Errorf("%+v", i)
	}
	if err := h.runs.end(first.Run, sentinels.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second run", func() bool { return h.runs.count() == 2 })
	second, _ := h.runs.newest()
	if err := h.runs.end(second, sentinels.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the queue", func() bool { return h.info(t, "s").Waiting == 0 })
	check := func(h *harness) {
		t.Helper()
		i := h.info(t, "s")
		if i.Armed || i.Ended != "ended: it has started 2 of 2 runs (maxRuns)" || i.Started != 2 || i.Problem != "" {
			t.Errorf("%+v", i)
		}
		list, err := h.Receive(t.Context(), "s", "0", triggers.Request{Body: []byte("a")})
		if err != nil || len(list) != 1 || list[0].Outcome != triggers.Refused || list[0].Reason != i.Ended {
			t.Errorf("a request: %+v, %v", list, err)
		}
	}
	check(h)
	h.Close()
	next := newHarness(t, h.db.Snapshot())
	next.arm(t, "s", sentinels.OverlapSkip, `{"maxRuns":2}`)
	check(next)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if adm, err := next.kind.fire(ctx, "s", firing("a")); err == nil {
		t.Errorf("an ended trigger fired: %+v", adm)
	}
	if next.runs.count() != 0 {
		t.Errorf("%d runs after the restart", next.runs.count())
	}
	next.defs.save("s", sentinels.OverlapSkip, `{"maxRuns":3}`)
	if err := next.Refresh(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if adm := next.fire(t, "s", firing("a")); adm.Outcome != triggers.Started {
		t.Errorf("an edited trigger: %+v", adm)
	}
}

// TestTriggerEndsAtATime: it fires before until, and not from then on.
func TestTriggerEndsAtATime(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	end := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	now := end.Add(-time.Second)
	h.options.Now = func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return now }
	h.Dispatcher = dispatch.New(h.options)
	h.arm(t, "s", sentinels.OverlapParallel, `{"until":"2040-01-01T01:00:00+01:00"}`)
	if adm := h.fire(t, "s", firing("a")); adm.Outcome != triggers.Started {
		t.Errorf("%+v", adm)
	}
	h.mu.Lock()
	now = end
	h.mu.Unlock()
	if adm, err := h.kind.fire(t.Context(), "s", firing("a")); err == nil {
		t.Errorf("it fired: %+v", adm)
	}
	if i := h.info(t, "s"); i.Armed || !strings.HasPrefix(i.Ended, "ended at 2040-01-01T01:00:00+01:00") || i.Fired != 1 {
		t.Errorf("%+v", i)
	}
}
