package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A keptFire is a fire that waits, as the store has it. Its state is kept with
// the trigger and its count of missed occasions is counted already.
type keptFire struct {
	Key         string           `json:"key,omitempty"`
	Replay      string           `json:"replay,omitempty"`
	ReplayForMs int64            `json:"replayForMs,omitempty"`
	At          time.Time        `json:"at"`
	Event       *sentinels.Event `json:"event,omitempty"`
}

func keep(f triggers.Firing) keptFire {
	return keptFire{Key: f.Key, Replay: f.Replay, ReplayForMs: f.ReplayFor.Milliseconds(), At: f.At, Event: f.Event}
}

func (f keptFire) fire() triggers.Firing {
	return triggers.Firing{Key: f.Key, Replay: f.Replay, ReplayFor: time.Duration(f.ReplayForMs) * time.Millisecond, At: f.At, Event: f.Event}
}

// A pendingFire waits for quiet. Its times are calendar time, so what was due
// while the host was down is due when the triggers are armed again.
type pendingFire struct {
	First time.Time `json:"first"` // when the first fire of those that it stands for came
	Due   time.Time `json:"due"`
	Fire  keptFire  `json:"fire"`
}

// debounce has a fire wait for quiet, in the place of the one that waits
// already. However many come, it waits no longer than the longest wait.
func (d *draft) debounce(f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	t := d.t
	quiet, longest := t.common.Debounce()
	next := &pendingFire{First: d.at, Due: d.at.Add(quiet), Fire: keep(f)}
	reason := "waits for quiet"
	if t.pending != nil {
		next.First = t.pending.First
		d.rec.Debounced++
		reason = "waits for quiet in the place of an earlier fire"
	}
	if latest := next.First.Add(longest); next.Due.After(latest) {
		next.Due = latest
	}
	if err := d.remember(f, keyRecord{Outcome: triggers.Debounced}); err != nil {
		return triggers.Admission{}, nil, err
	}
	// One pair for each trigger, so the earlier fire is gone with the same commit.
	d.puts = append(d.puts, encodePut(bucketTriggerPending, triggerKey(t.s.id, t.name), next))
	d.done = append(d.done, func() {
		t.pending = next
		t.armPending()
	})
	return d.settle(triggers.Debounced, "", reason, f)
}

// readPending finds the fire that waited when the trigger was disarmed.
func (t *armedTrigger) readPending() error {
	raw, ok, err := t.s.a.rt.db.Get(bucketTriggerPending, triggerKey(t.s.id, t.name))
	if err != nil || !ok {
		return err
	}
	t.pending = new(pendingFire)
	if err := json.Unmarshal(raw, t.pending); err != nil {
		return fmt.Errorf("read debounced fire of %q: %w", t.name, err)
	}
	return nil
}

// armPending sets the timer of the fire that waits. The caller holds the
// sentinel's lock. Times are on the wall, timers are not: after a jump of the
// clock the fire is late or early by as much, once.
func (t *armedTrigger) armPending() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if t.pending == nil || t.s.retired {
		return
	}
	t.timer = time.AfterFunc(time.Until(t.pending.Due), func() { t.s.a.spawn(t.due) })
}

// due admits the fire that has found quiet. A timer that was set for an earlier
// fire finds one that is not due yet and does nothing.
func (t *armedTrigger) due(context.Context) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || t.pending == nil || time.Now().Before(t.pending.Due) {
		return
	}
	d := t.draft()
	d.waited = true
	d.puts = append(d.puts, store.Put{Bucket: bucketTriggerPending, Key: triggerKey(s.id, t.name), Delete: true})
	d.done = append(d.done, func() { t.pending, t.timer = nil, nil })
	// What it comes to commits together with the end of its wait. An error leaves
	// both as they are.
	if _, _, err := d.overlap(t.pending.Fire.fire()); err != nil {
		s.a.rt.log.Warn("debounced fire cannot be admitted, it is tried again", "sentinel", s.id, "trigger", t.name, "error", err)
		t.timer = time.AfterFunc(firstRest, func() { s.a.spawn(t.due) })
	}
}
