package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Bounds of a sentinel's queue: fires, and bytes of their events in the store.
const (
	maxQueued      = 1000
	maxQueuedBytes = 64 << 20
)

// A queuedFire starts when the runs before it have ended. In memory it is
// without its fire.
type queuedFire struct {
	Number  uint64    `json:"-"` // its key in the store; the order
	Trigger string    `json:"trigger"`
	Since   int64     `json:"since"`             // when its trigger began: one that is written again is another
	Restart bool      `json:"restart,omitempty"` // the active runs are stopped for it
	Fire    *keptFire `json:"fire,omitempty"`

	bytes int64 // in the store
}

// of reports whether the fire is one of t's.
func (q *queuedFire) of(t *armedTrigger) bool {
	return q.Trigger == t.name && q.Since == t.rec.Since.UnixMicro()
}

func queueKey(id sentinels.ID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(triggerPrefix(id), n)
}

// readQueue finds what waits. Only numbers and sizes stay in memory: a thousand
// events of a megabyte each must not.
func (s *armedSentinel) readQueue() error {
	prefix := triggerPrefix(s.id)
	var bad error
	err := s.a.rt.db.Scan(bucketTriggerQueue, prefix, nil, false, func(key, value []byte) bool {
		var q queuedFire
		if bad = json.Unmarshal(value, &q); bad != nil {
			return false
		}
		q.Number, q.Fire, q.bytes = binary.BigEndian.Uint64(key[len(prefix):]), nil, int64(len(value))
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

// push and remove keep the queue, its size and what others may see of it in
// step. The caller holds the lock, but for a sentinel that is not visible yet.
func (s *armedSentinel) push(q queuedFire) {
	s.queue = append(s.queue, q)
	s.last, s.bytes = q.Number, s.bytes+q.bytes
	s.waiting.Add(1)
}

// remove takes the fire at i out, leaving the array to those who walk over it.
func (s *armedSentinel) remove(i int) {
	s.bytes -= s.queue[i].bytes
	s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
	s.waiting.Add(-1)
}

// enqueue has the fire wait until the runs before it have ended. One that
// restarts takes the place of another of its trigger that still waits for the
// old runs to stop: the newest counts.
func (d *draft) enqueue(f triggers.Firing, restart bool) (triggers.Admission, *store.Ticket, error) {
	s, t := d.t.s, d.t
	kept := keep(f)
	q := queuedFire{Number: s.last + 1, Trigger: t.name, Since: t.rec.Since.UnixMicro(), Restart: restart, Fire: &kept}
	put := encodePut(bucketTriggerQueue, queueKey(s.id, q.Number), q)
	q.Fire, q.bytes = nil, int64(len(put.Value))
	reason := "a run is on"
	place := -1 // of the fire whose turn this one takes
	if restart {
		reason = "the active run is stopped for it"
		for i, other := range s.queue {
			if other.Restart && other.of(t) {
				place = i
			}
		}
	}
	switch {
	case place >= 0: // so the queue does not grow and its bounds do not matter
		old := s.queue[place]
		d.rec.Skipped++
		d.puts = append(d.puts, store.Put{Bucket: bucketTriggerQueue, Key: queueKey(s.id, old.Number), Delete: true})
		d.done = append(d.done, func() { s.remove(place) })
		reason = "the active run is stopped for it, and not for the firing before"
	case len(s.queue) >= maxQueued:
		return d.settle(triggers.Dropped, "", fmt.Sprintf("the queue is full: %d fires wait", len(s.queue)), f)
	case s.bytes+q.bytes > maxQueuedBytes:
		return d.settle(triggers.Dropped, "", fmt.Sprintf("the queue is full: the events in it have %d bytes", s.bytes), f)
	}
	if err := d.remember(f, keyRecord{Outcome: triggers.Queued}); err != nil {
		return triggers.Admission{}, nil, err
	}
	d.puts = append(d.puts, put)
	d.done = append(d.done, func() {
		s.push(q)
		s.a.spawn(s.drain) // a run that ended since it was looked saw no queue
	})
	return d.settle(triggers.Queued, "", reason, f)
}

// drain starts what waits, as far as the active runs allow. More than one
// at a time do no harm: each decision is made under the lock.
func (s *armedSentinel) drain(ctx context.Context) {
	for {
		stop, wait, again, err := s.startNext()
		if wait != nil {
			err = wait.Wait(ctx)
		}
		for _, run := range stop {
			if err == nil {
				err = s.stopFor(ctx, run)
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // of the store, or of a run that does not stop
			s.a.rt.log.Warn("queued fire cannot be started, it is tried again", "sentinel", s.id, "error", err)
			timer := time.NewTimer(firstRest)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		case !again:
			return
		}
	}
}

// startNext starts the first fire of the queue, or says which runs have to be
// stopped for it, or what has to be durable before. again says that there may be
// more to do.
func (s *armedSentinel) startNext() (stop []sentinels.RunID, wait *store.Ticket, again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || s.paused || len(s.queue) == 0 {
		return nil, nil, false, nil
	}
	head := s.queue[0]
	t := s.trigger(head.Trigger)
	if t == nil || !head.of(t) {
		t = &armedTrigger{s: s, name: head.Trigger, gone: true}
		t.def.Type = typeOf(t.name)
	}
	// The policy of today counts, not that of the moment when the fire came.
	switch on := s.a.runsOn(s.id); {
	case len(on) == 0:
	case s.policy(t) == sentinels.OverlapParallel && len(on) < maxParallel:
	case head.Restart:
		return on, nil, true, nil
	default: // the end of a run comes back here
		return nil, nil, false, nil
	}
	key := queueKey(s.id, head.Number)
	raw, found, err := s.a.rt.db.Get(bucketTriggerQueue, key)
	if err != nil {
		return nil, nil, false, err
	}
	if !found { // its commit is on its way, and the newest is not before it
		return nil, s.newest, true, nil
	}
	var q queuedFire
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, nil, false, fmt.Errorf("read queue of %q: %w", s.id, err)
	}
	// The turn and the run are one commit: after a crash there is the one or the
	// other.
	d := t.draft()
	d.waited = true
	d.puts = append(d.puts, store.Put{Bucket: bucketTriggerQueue, Key: key, Delete: true})
	d.done = append(d.done, func() { s.remove(0) })
	_, _, err = d.start(q.Fire.fire())
	return nil, nil, err == nil, err
}

// stopFor stops a run that is in the way of a newer one. One that comes
// to its end by itself just now is waited for; one that is over is in no
// way.
func (s *armedSentinel) stopFor(ctx context.Context, run sentinels.RunID) error {
	rt := s.a.rt
	err := rt.Stop(ctx, run)
	if code := abi.CodeOf(err); err == nil || code != abi.Conflict && code != abi.NotFound {
		return err
	}
	if r := rt.live(run); r != nil {
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	info, err := rt.Status(run)
	if abi.CodeOf(err) == abi.NotFound || err == nil && info.Status.Final() {
		s.a.ended(s.id, run) // it never began, or has ended meanwhile
		return nil
	}
	return err
}
