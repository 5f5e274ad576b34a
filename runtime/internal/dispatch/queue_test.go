package dispatch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// ofAgent returns a firing that an event of an agent caused.
func ofAgent(name string) triggers.Firing {
	f := firing(name)
	f.Event.By = "agent:ci"
	return f
}

// TestQueueHasPlacesForPersons: events of agents and models fill half of a queue, in firings and in bytes, also over
// a restart; a place that one of them leaves is free for the next.
func TestQueueHasPlacesForPersons(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapQueue, `{}`)
	h.fire(t, "s", firing("first"))
	fire := func(f triggers.Firing, want triggers.Outcome, reason string) {
		t.Helper()
		if adm := h.fire(t, "s", f); adm.Outcome != want || !strings.Contains(adm.Reason, reason) {
			t.Fatalf("%s: %+v, want %s", f.Event.Name, adm, want)
		}
	}
	for n := range 500 {
		f := ofAgent("of an agent")
		if n%2 > 0 {
			f.Event.By = "model"
		}
		fire(f, triggers.Queued, "")
	}
	const full = "the queue is full for events of agents and models: 500 firings of theirs wait"
	fire(ofAgent("one more"), triggers.Refused, full)
	h.restart(t)
	fire(ofAgent("after the restart"), triggers.Refused, full)
	h.endRuns(t)
	eventually(t, "the next run", func() bool { return h.runs.count() == 2 && h.info(t, "s").Waiting == 499 })
	fire(ofAgent("in the place that is free"), triggers.Queued, "")
	fire(ofAgent("and no further one"), triggers.Refused, full)
	for range 500 {
		fire(firing("of a person"), triggers.Queued, "")
	}
	fire(firing("beyond the queue"), triggers.Refused, "the queue is full: 1000 firings wait")

	h.arm(t, "large", sentinels.OverlapQueue, `{}`)
	big := json.RawMessage(`"` + strings.Repeat("x", 15<<20) + `"`)
	for n, want := range []triggers.Outcome{triggers.Started, triggers.Queued, triggers.Queued, triggers.Refused} {
		f := ofAgent("large")
		f.Event.Data = big
		adm := h.fire(t, "large", f)
		if adm.Outcome != want || want == triggers.Refused && !strings.Contains(adm.Reason, "of agents and models: those in it have") {
			t.Errorf("%d: %+v, want %s", n, adm, want)
		}
	}
	f := firing("large")
	f.Event.Data = big
	if adm := h.fire(t, "large", f); adm.Outcome != triggers.Queued {
		t.Errorf("a person's: %+v", adm)
	}
}

// TestDebouncedEventsOfPersonsHaveTheirPlace: a debounce that has an event of a person counts for no agent.
func TestDebouncedEventsOfPersonsHaveTheirPlace(t *testing.T) {
	of := func(by ...string) triggers.Firing {
		f := ofAgent("newest")
		for _, one := range by {
			f.Event.Batch = append(f.Event.Batch, sentinels.BatchedEvent{Name: "one", By: one})
		}
		return f
	}
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapQueue, `{}`)
	h.fire(t, "s", firing("first"))
	for range 500 {
		h.fire(t, "s", of("agent:ci", "model"))
	}
	for n, c := range []struct {
		f    triggers.Firing
		want triggers.Outcome
	}{{of("agent:ci", "agent:ci"), triggers.Refused}, {of("", "agent:ci"), triggers.Queued}} {
		if adm := h.fire(t, "s", c.f); adm.Outcome != c.want {
			t.Errorf("%d: %+v, want %s", n, adm, c.want)
		}
	}
}
