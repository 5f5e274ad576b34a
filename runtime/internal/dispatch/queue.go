package dispatch

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Limits of a sentinel's queue: firings, and bytes of their events in the store. Those that events of
// agents and models caused have half of both together, so that a firing of a person, a schedule or a
// file finds a place.
const (
	maxQueued      = 1000
	maxQueuedBytes = 64 << 20
)

// A queuedFiring starts when the runs before it have ended. In memory it is
// without its Firing, unless later firings join it.
type queuedFiring struct {
	Number  uint64      `json:"-"` // its key in the store; the order
	Trigger string      `json:"trigger"`
	Since   int64       `json:"since"`             // when its trigger was armed first: one that is written again is another
	Restart bool        `json:"restart,omitempty"` // the active runs are stopped for it
	Joins   bool        `json:"joins,omitempty"`   // later firings of the trigger join it
	Firing  *keptFiring `json:"firing,omitempty"`

	bytes int64 // in the store
	held  bool  // an event of an agent or model caused it
}

// of reports whether the firing is one of t.
func (q *queuedFiring) of(t *armedTrigger) bool {
	return q.Trigger == t.name && q.Since == t.rec.Since.UnixMicro()
}

func queueKey(id sentinels.ID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(sentinelPrefix(id), n)
}

// readQueue reads what waits. Memory holds only numbers and sizes, because a
// thousand events may have a megabyte each.
func (s *armedSentinel) readQueue() error {
	prefix := sentinelPrefix(s.id)
	var bad error
	err := s.d.opt.Store.Scan(bucketQueue, prefix, nil, false, func(key, value []byte) bool {
		var q queuedFiring
		if bad = json.Unmarshal(value, &q); bad != nil {
			return false
		}
		q.Number, q.bytes = binary.BigEndian.Uint64(key[len(prefix):]), int64(len(value))
		q.held = q.Firing.held()
		if !q.Joins {
			q.Firing = nil
		}
		s.push(q)
		return true
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return fmt.Errorf("read queue of %q: %w", s.id, err)
	}
	return nil
}

// push and remove keep the queue, its size and its length for other callers in
// step. The caller holds the lock, except for a sentinel that is not visible yet.
func (s *armedSentinel) push(q queuedFiring) {
	s.queue = append(s.queue, q)
	s.last, s.bytes = q.Number, s.bytes+q.bytes
	if q.held {
		s.held, s.heldBytes = s.held+1, s.heldBytes+q.bytes
	}
	s.waiting.Add(1)
}

// remove removes the firing at i. It copies what follows, because a caller may be
// iterating over the old slice.
func (s *armedSentinel) remove(i int) {
	s.bytes -= s.queue[i].bytes
	if s.queue[i].held {
		s.held, s.heldBytes = s.held-1, s.heldBytes-s.queue[i].bytes
	}
	s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
	s.waiting.Add(-1)
}

// enqueue queues a firing until the runs before it have ended, for a reason that people
// read. With the policy restart it replaces another of its trigger that still waits for
// the old runs to stop: the newest counts. With the policy join it joins another one.
func (dec *decision) enqueue(f triggers.Firing, policy sentinels.Overlap, reason string) (triggers.Admission, *store.Ticket, error) {
	s, t := dec.t.s, dec.t
	q := queuedFiring{
		Number: s.last + 1, Trigger: t.name, Since: t.rec.Since.UnixMicro(),
		Restart: policy == sentinels.OverlapRestart, Joins: policy == overlapJoin,
	}
	replaced := -1 // the firing in whose place this one is queued
	if q.Restart || q.Joins {
		replaced = slices.IndexFunc(s.queue, func(o queuedFiring) bool { return o.of(t) && o.Restart == q.Restart && o.Joins == q.Joins })
	}
	queued := f
	if q.Joins && replaced >= 0 {
		var err error
		if queued.Event, err = t.join(s.queue[replaced].Firing.Event, f.Event); err != nil {
			return triggers.Admission{}, nil, err
		}
	}
	kept := keep(queued)
	q.Firing, q.held = &kept, kept.held()
	put := encodePut(bucketQueue, queueKey(s.id, q.Number), q)
	if q.bytes = int64(len(put.Value)); !q.Joins {
		q.Firing = nil
	}
	switch {
	case replaced >= 0: // the queue does not grow, so its limits do not matter
		old := s.queue[replaced]
		dec.rec.Coalesced++
		dec.puts = append(dec.puts, store.Put{Bucket: bucketQueue, Key: queueKey(s.id, old.Number), Delete: true})
		dec.done = append(dec.done, func() { s.remove(replaced) })
		if reason = "a run is active, and the firing joins the one that is queued"; q.Restart {
			reason = "the active run is stopped for it, and not for the firing before"
		}
	case len(s.queue) >= maxQueued:
		return dec.settle(triggers.Refused, "", fmt.Sprintf("the queue is full: %d firings wait", len(s.queue)), f)
	case s.bytes+q.bytes > maxQueuedBytes:
		return dec.settle(triggers.Refused, "", fmt.Sprintf("the queue is full: the events in it have %d bytes", s.bytes), f)
	case q.held && s.held >= maxQueued/2:
		why := fmt.Sprintf("the queue is full for events of agents and models: %d firings of theirs wait", s.held)
		return dec.settle(triggers.Refused, "", why, f)
	case q.held && s.heldBytes+q.bytes > maxQueuedBytes/2:
		why := fmt.Sprintf("the queue is full for events of agents and models: those in it have %d bytes", s.heldBytes)
		return dec.settle(triggers.Refused, "", why, f)
	}
	if err := dec.remember(f, keyRecord{Outcome: triggers.Queued}); err != nil {
		return triggers.Admission{}, nil, err
	}
	dec.puts = append(dec.puts, put)
	dec.done = append(dec.done, func() {
		s.push(q)
		s.d.spawn(s.drain) // a run that ended since the active runs were read found no queue
	})
	return dec.settle(triggers.Queued, "", reason, f)
}

// drain starts what is queued, as far as the active runs allow. More than one may
// run at a time: each decision is made under the lock.
func (s *armedSentinel) drain(ctx context.Context) {
	for {
		now, err := s.startNext()
		if now.wait > 0 {
			slept := sleep(ctx, now.wait)
			s.mu.Lock()
			s.delayed = false
			s.mu.Unlock()
			if !slept {
				return
			}
		}
		if now.durable != nil {
			err = now.durable.Wait(ctx)
		}
		for _, run := range now.end {
			if err == nil {
				err = s.stopFor(ctx, run, now.restart)
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // of the store, or of a run that does not stop
			s.d.log.Warn("queued firing cannot be started, it is tried again", "sentinel", s.id, "error", err)
			if !sleep(ctx, minBackoff) {
				return
			}
		case !now.again:
			return
		}
	}
}

// A turn is what has to happen before the first firing of a queue starts.
type turn struct {
	end     []sentinels.RunID // runs that must end
	restart bool              // all of end; otherwise those of them that are undecided still
	durable *store.Ticket     // a commit
	wait    time.Duration     // until the rate of the agent may permit a start; the caller waits for delayed
	again   bool              // there may be more to start then
}

// startNext starts the first firing of the queue, or returns what has to happen before.
func (s *armedSentinel) startNext() (turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || s.paused || len(s.queue) == 0 {
		return turn{}, nil
	}
	head := s.queue[0]
	t := s.trigger(head.Trigger)
	if t == nil || !head.of(t) {
		t = &armedTrigger{s: s, name: head.Trigger, gone: true}
		t.def.Type = typeOf(t.name)
	}
	// The policy of now applies, not that of the moment when it was queued.
	switch active := s.d.activeRuns(s.id); {
	case len(active) == 0:
	case s.policy(t) == sentinels.OverlapParallel && len(active) < maxParallel:
	case head.Restart:
		return turn{end: active, restart: true, again: true}, nil
	default: // the end of a run drains the queue again, and so does one that becomes undecided
		undecided := s.d.undecided(active)
		return turn{end: undecided, again: len(undecided) > 0}, nil
	}
	key := queueKey(s.id, head.Number)
	raw, found, err := s.d.opt.Store.Get(bucketQueue, key)
	if err != nil {
		return turn{}, err
	}
	if !found { // its commit is under way, and the newest is not before it
		return turn{durable: s.newest, again: true}, nil
	}
	var q queuedFiring
	if err := json.Unmarshal(raw, &q); err != nil {
		return turn{}, fmt.Errorf("read queue of %q: %w", s.id, err)
	}
	if s.delayed { // another drain waits
		return turn{}, nil
	}
	if wait := s.d.rates.Take(s.by); wait > 0 {
		s.delayed = true
		return turn{wait: wait, again: true}, nil
	}
	// The removal and the run are one commit: after a crash the store has the
	// queued firing or the run.
	dec := t.decision()
	dec.waited = true
	dec.puts = append(dec.puts, store.Put{Bucket: bucketQueue, Key: key, Delete: true})
	dec.done = append(dec.done, func() { s.remove(0) })
	_, _, err = dec.start(q.Firing.firing())
	return turn{again: err == nil}, err
}

// stopFor ends a run that is undecided, or else stops it, since the firing at the head of the
// queue replaces it. A run that has ended already does not count as active any more.
func (s *armedSentinel) stopFor(ctx context.Context, run sentinels.RunID, restart bool) error {
	if ended, err := s.endUndecided(ctx, run); ended || err != nil || !restart {
		return err
	}
	err := s.d.opt.Runs.Stop(ctx, run)
	if code := abi.CodeOf(err); err == nil || code != abi.Conflict && code != abi.NotFound {
		return err
	}
	r, err := s.d.opt.Runs.Run(run)
	if abi.CodeOf(err) == abi.NotFound || err == nil && r.Status.Final() {
		s.d.RunEnded(s.id, run)
		return nil
	}
	return err
}

// endUndecided ends a run that is undecided, and reports whether it was.
func (s *armedSentinel) endUndecided(ctx context.Context, run sentinels.RunID) (bool, error) {
	ended, err := s.d.opt.Runs.EndUndecided(ctx, run)
	if ended && err == nil {
		s.d.log.Warn("a run that waited for a decision about an interrupted call was ended for the next firing", "sentinel", s.id, "run", run)
	}
	return ended, err
}

// endLogged is endUndecided where an error has no other reader.
func (s *armedSentinel) endLogged(ctx context.Context, run sentinels.RunID) {
	if _, err := s.endUndecided(ctx, run); err != nil && ctx.Err() == nil {
		s.d.log.Warn("a run that waits for a decision cannot be ended", "sentinel", s.id, "run", run, "error", err)
	}
}
