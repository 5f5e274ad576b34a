package dispatch

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
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

// held reports whether events of agents or models alone caused the firing.
func (f *keptFiring) held() bool { return eventlog.Cause(f.Event) != "" }

// A pendingFiring is what was debounced. Its times are wall clock times, so what was
// due while the host was down is due when the triggers are armed again. Each firing
// has a pair of its own in the store, so that a commit has the size of one firing.
type pendingFiring struct {
	First time.Time `json:"first"` // when the oldest of the firings came
	Due   time.Time `json:"due"`

	firings []keptFiring
	bytes   int // of the firings in the store
}

// Limits of what a debounce collects: firings, and bytes of their events. Beyond
// them it is due at once, so that nothing is left out.
const (
	maxPending      = 1000
	maxPendingBytes = 4 << 20
)

// pendingKey is the place of a debounced firing of a trigger; pendingKey(id, name, 0)
// without its number is the prefix of all of them.
func pendingKey(id sentinels.ID, name string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(triggerKey(id, name), 0), n)
}

// debounce delays a firing until firings stop, and joins those that wait already. The
// total delay has a limit, however many firings come. delay is for a firing that waits
// for another reason, see [armedTrigger.ownDelay].
func (dec *decision) debounce(f triggers.Firing, delay time.Duration, reason string) (triggers.Admission, *store.Ticket, error) {
	t := dec.t
	quiet, longest := t.common.Debounce()
	quiet, longest = max(quiet, delay), max(longest, delay)
	next := &pendingFiring{First: dec.at, Due: dec.at.Add(quiet)}
	if reason == "" {
		reason = "waits until firings stop"
	}
	if t.pending != nil {
		next.First, next.firings, next.bytes = t.pending.First, t.pending.firings, t.pending.bytes
		dec.rec.Coalesced++
		reason += ", together with earlier firings"
	}
	put := encodePut(bucketPending, pendingKey(t.s.id, t.name, uint64(len(next.firings))), keep(f))
	next.firings, next.bytes = append(next.firings, keep(f)), next.bytes+len(put.Value)
	if latest := next.First.Add(longest); next.Due.After(latest) {
		next.Due = latest
	}
	if len(next.firings) >= maxPending || next.bytes >= maxPendingBytes {
		next.Due = dec.at
	}
	if err := dec.remember(f, keyRecord{Outcome: triggers.Debounced}); err != nil {
		return triggers.Admission{}, nil, err
	}
	dec.puts = append(dec.puts, put, encodePut(bucketPending, triggerKey(t.s.id, t.name), next))
	dec.done = append(dec.done, func() {
		t.pending = next
		t.armPending()
	})
	return dec.settle(triggers.Debounced, "", reason, f)
}

// readPending reads what was debounced when the trigger was disarmed.
func (t *armedTrigger) readPending() error {
	raw, ok, err := t.s.d.opt.Store.Get(bucketPending, triggerKey(t.s.id, t.name))
	if err != nil || !ok {
		return err
	}
	t.pending = new(pendingFiring)
	err = json.Unmarshal(raw, t.pending)
	prefix := append(triggerKey(t.s.id, t.name), 0)
	if err == nil {
		var bad error
		err = t.s.d.opt.Store.Scan(bucketPending, prefix, nil, false, func(_, value []byte) bool {
			var f keptFiring
			bad = json.Unmarshal(value, &f)
			t.pending.firings, t.pending.bytes = append(t.pending.firings, f), t.pending.bytes+len(value)
			return bad == nil
		})
		if err == nil {
			err = bad
		}
	}
	if err == nil && len(t.pending.firings) == 0 {
		err = errors.New("its firings are missing")
	}
	if err != nil {
		return fmt.Errorf("read debounced firings of %q: %w", t.name, err)
	}
	return nil
}

// deletePending returns the writes that delete what is debounced.
func (t *armedTrigger) deletePending() []store.Put {
	puts := []store.Put{{Bucket: bucketPending, Key: triggerKey(t.s.id, t.name), Delete: true}}
	for i := range t.pending.firings {
		puts = append(puts, store.Put{Bucket: bucketPending, Key: pendingKey(t.s.id, t.name, uint64(i)), Delete: true})
	}
	return puts
}

// joined returns one firing for all that was debounced: the newest, whose event has
// what the events of all report.
func (t *armedTrigger) joined() (triggers.Firing, error) {
	list := t.pending.firings
	f := list[len(list)-1].firing()
	if f.Event == nil {
		return f, nil
	}
	if _, ok := t.armed.(triggers.Joiner); ok {
		event := list[0].Event
		for _, next := range list[1:] {
			var err error
			if event, err = t.join(event, next.Event); err != nil {
				return f, err
			}
		}
		f.Event = event
		return f, nil
	}
	event := *f.Event
	for _, one := range list {
		if e := one.Event; e != nil {
			event.Batch = append(event.Batch, sentinels.BatchedEvent{ID: e.ID, Name: e.Name, Source: e.Source, Subject: e.Subject, Time: e.Time, Data: e.Data, By: e.By})
			if e.Hops > event.Hops {
				event.Hops, event.Path = e.Hops, e.Path
			}
		}
	}
	f.Event = &event
	return f, nil
}

// join joins the events of two firings of a trigger that is a [triggers.Joiner]. The
// shorter chain counts: if one of them has no run as its cause, neither has the whole.
func (t *armedTrigger) join(older, newer *sentinels.Event) (*sentinels.Event, error) {
	event, err := t.armed.(triggers.Joiner).Join(older, newer)
	if err != nil {
		return nil, fmt.Errorf("join firings of %q: %w", t.name, err)
	}
	event.Hops, event.Path = newer.Hops, newer.Path
	if older.Hops < newer.Hops {
		event.Hops, event.Path = older.Hops, older.Path
	}
	return event, nil
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
	dec.puts = append(dec.puts, t.deletePending()...)
	dec.done = append(dec.done, func() { t.pending, t.timer = nil, nil })
	// The outcome and the end of the wait are one commit. An error changes neither.
	f, err := t.joined()
	if err == nil {
		_, _, err = dec.overlap(f)
	}
	if err != nil {
		s.d.log.Warn("debounced firing cannot be admitted, it is tried again", "sentinel", s.id, "trigger", t.name, "error", err)
		t.timer = time.AfterFunc(minBackoff, func() { s.d.spawn(t.due) })
	}
}
