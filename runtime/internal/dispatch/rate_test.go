package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// newAgentHarness returns a harness in which the triggers of an agent start 8 runs a minute, two of them at once.
func newAgentHarness(t *testing.T, db *store.Memory, agents ...sentinels.ID) *harness {
	h := newHarness(t, db)
	h.options.AgentStarts = 8
	h.Dispatcher = dispatch.New(h.options)
	h.defs.by = map[sentinels.ID]string{}
	for _, id := range agents {
		h.defs.by[id] = "agent:ci"
	}
	return h
}

// endRuns ends all active runs.
func (h *harness) endRuns(t *testing.T) {
	t.Helper()
	unfinished, err := h.runs.Unfinished()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range unfinished {
		if err := h.runs.end(id, sentinels.StatusCompleted); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStartsOfAgentsAreSpread: the schedules of an agent start as many runs as the limit says, however many there are;
// one firing of each waits and the others are skipped, those of a person all start.
func TestStartsOfAgentsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []sentinels.ID{"a0", "a1", "a2", "a3", "a4"}
		h := newAgentHarness(t, store.NewMemory(), all...)
		for _, id := range append([]sentinels.ID{"person"}, all...) {
			h.arm(t, id, "", `{}`)
		}
		var reasons []string
		for range 60 {
			for _, id := range all {
				if adm := h.fire(t, id, firing("tick")); adm.Outcome == triggers.Skipped {
					reasons = append(reasons, adm.Reason)
				}
			}
			if adm := h.fire(t, "person", firing("tick")); adm.Outcome != triggers.Started {
				t.Fatalf("a person's: %+v", adm)
			}
			time.Sleep(time.Second)
			h.endRuns(t)
		}
		var fired, started, skipped, waiting int
		for _, id := range all {
			i := h.info(t, id)
			if i.Waiting > 1 {
				t.Errorf("%s: %d firings wait", id, i.Waiting)
			}
			fired, started, skipped, waiting = fired+int(i.Fired), started+int(i.Started), skipped+int(i.Skipped), waiting+i.Waiting
		}
		if started < 8 || started > 10 || started+skipped+waiting != fired || fired != 300 {
			t.Errorf("%d fired, %d started, %d skipped, %d wait", fired, started, skipped, waiting)
		}
		if n := len(reasons); n != skipped || !strings.Contains(reasons[n-1], "the triggers of agent:ci start at most 8 runs a minute (limits.agentStarts)") {
			t.Errorf("%d reasons, the last is %q", n, reasons[n-1])
		}
		first := 0 // lines of a log for the skipped
		h.mu.Lock()
		for _, f := range h.observed {
			if f.Outcome == triggers.Skipped && f.Held <= 1 {
				first++
			}
		}
		h.mu.Unlock()
		if first > started+len(all) {
			t.Errorf("%d of %d skipped firings are for a log", first, skipped)
		}
		time.Sleep(time.Minute)
		for _, id := range all {
			if i := h.info(t, id); i.Waiting > 0 {
				t.Errorf("%s: %d firings wait a minute later", id, i.Waiting)
			}
		}
	})
}

// TestHeldBackFiringsAreKept: what an agent's sentinel queues starts in order when the limit permits, also in the next process.
func TestHeldBackFiringsAreKept(t *testing.T) {
	for _, policy := range []sentinels.Overlap{sentinels.OverlapQueue, sentinels.OverlapParallel} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newAgentHarness(t, store.NewMemory(), "s")
				h.arm(t, "s", policy, `{}`)
				for i := range 8 {
					h.fire(t, "s", firing(fmt.Sprint(i)))
					h.endRuns(t)
					synctest.Wait()
				}
				begun := len(h.runs.begun)
				if begun > 2 {
					t.Errorf("%d runs at once", begun)
				}
				h.Close()
				next := newAgentHarness(t, h.db.Snapshot(), "s")
				next.defs.save("s", policy, `{}`)
				if err := next.Arm(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 60 {
					time.Sleep(time.Second)
					next.endRuns(t)
				}
				var names []string
				for _, e := range slices.Concat(h.runs.event, next.runs.event) {
					names = append(names, e.Name)
				}
				if got := strings.Join(names, " "); got != "0 1 2 3 4 5 6 7" {
					t.Errorf("runs of %s", got)
				}
			})
		})
	}
}
