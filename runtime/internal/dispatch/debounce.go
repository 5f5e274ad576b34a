package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A keptFiring is a firing that waits, as it is stored. Its State is in the record
// of the trigger, and its Missed is counted already.
type keptFiring struct {
	Key         string           `json:"key,omitempty"`
	Replay      string           `json:"replay,omitempty"`
	ReplayForMs int64            `json:"replayForMs,omitempty"`
	At          time.Time        `json:"at"`
	Event       *sentinels.Event `json:"event,omitempty"`
}

func keep(f triggers.Firing) keptFiring {
	return keptFiring{Key: f.Key, Replay: f.Replay, ReplayForMs: f.ReplayFor.Milliseconds(), At: f.At, Event: f.Event}
}

func (f keptFiring) firing() triggers.Firing {
	return triggers.Firing{Key: f.Key, Replay: f.Replay, ReplayFor: time.Duration(f.ReplayForMs) * time.Millisecond, At: f.At, Event: f.Event}
}

// A pendingFiring is debounced. Its times are wall clock times, so what was due
// while the host was down is due when the triggers are armed again.
type pendingFiring struct {
	First  time.Time  `json:"first"` // when the first of the firings that it replaced came
	Due    time.Time  `json:"due"`
	Firing keptFiring `json:"firing"`
}

// debounce delays a firing until firings stop, and replaces the one that waits
// already. The total delay has a limit, however many firings come.
func (dec *decision) debounce(f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	t := dec.t
	quiet, longest := t.common.Debounce()
	next := &pendingFiring{First: dec.at, Due: dec.at.Add(quiet), Firing: keep(f)}
	reason := "waits until firings stop"
	if t.pending != nil {
		next.First = t.pending.First
		dec.rec.Coalesced++
		reason = "waits until firings stop, in place of an earlier firing"
	}
	if latest := next.First.Add(longest); next.Due.After(latest) {
		next.Due = latest
	}
	if err := dec.remember(f, keyRecord{Outcome: triggers.Debounced}); err != nil {
		return triggers.Admission{}, nil, err
	}
	// One pair for each trigger, so the same commit removes the earlier firing.
	dec.puts = append(dec.puts, encodePut(bucketPending, triggerKey(t.s.id, t.name), next))
	dec.done = append(dec.done, func() {
		t.pending = next
		t.armPending()
	})
	return dec.settle(triggers.Debounced, "", reason, f)
}

// readPending reads the firing that was debounced when the trigger was disarmed.
func (t *armedTrigger) readPending() error {
	raw, ok, err := t.s.d.opt.Store.Get(bucketPending, triggerKey(t.s.id, t.name))
	if err != nil || !ok {
		return err
	}
	t.pending = new(pendingFiring)
	if err := json.Unmarshal(raw, t.pending); err != nil {
		return fmt.Errorf("read debounced firing of %q: %w", t.name, err)
	}
	return nil
}

// armPending sets the timer of the debounced firing. The caller holds the
// sentinel's lock. Due is a wall clock time and a timer is not: after a jump of the
// clock the firing is late or early by as much, once.
func (t *armedTrigger) armPending() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if t.pending == nil || t.s.retired {
		return
	}
	t.timer = time.AfterFunc(time.Until(t.pending.Due), func() { t.s.d.spawn(t.due) })
}

// due admits the debounced firing once it is due. A timer that was set for an
// earlier firing finds one that is not due yet, and does nothing.
func (t *armedTrigger) due(context.Context) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || t.pending == nil || time.Now().Before(t.pending.Due) {
		return
	}
	dec := t.decision()
	dec.waited = true
	dec.puts = append(dec.puts, store.Put{Bucket: bucketPending, Key: triggerKey(s.id, t.name), Delete: true})
	dec.done = append(dec.done, func() { t.pending, t.timer = nil, nil })
	// The outcome and the end of the wait are one commit. An error changes neither.
	if _, _, err := dec.overlap(t.pending.Firing.firing()); err != nil {
		s.d.log.Warn("debounced firing cannot be admitted, it is tried again", "sentinel", s.id, "trigger", t.name, "error", err)
		t.timer = time.AfterFunc(minBackoff, func() { s.d.spawn(t.due) })
	}
}
