package runtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// An armedSentinel is one sentinel whose triggers are armed, as one revision of
// its definition has them. Another revision, a pause and its end make a new one
// that takes over what waits.
//
// # Concurrency
//
// The lock orders the decisions about fires, so that each sees what the one
// before has decided; commits follow in the same order and are waited for
// outside of it.
type armedSentinel struct {
	a         *arming
	id        sentinels.ID
	revision  int
	overlap   sentinels.Overlap
	paused    bool
	problem   string // why the definition cannot be read; it has no triggers then
	triggers  []*armedTrigger
	begun     bool                    // run was called; guarded by arming.change
	cancelRun context.CancelCauseFunc // of what run began; nil before
	running   sync.WaitGroup

	waiting atomic.Int64 // len(queue), for those who must not wait for the lock
	fresh   freshKeys

	mu      sync.Mutex
	retired bool          // nothing is decided any more
	queue   []queuedFire  // without their fires, which may be large
	last    uint64        // number of the newest one in the queue
	bytes   int64         // of the queue in the store
	newest  *store.Ticket // of the newest decision
}

// readArmed prepares the triggers of a definition: it finds the stored state of each,
// or begins to. What is kept of triggers that the definition has no more goes.
// None of this exists before the batch is committed, and no trigger fires
// before [armedSentinel.run]. The predecessor of the sentinel in this process
// must have ended.
func readArmed(a *arming, stored Stored, starting bool) (s *armedSentinel, b store.Batch, dropped []TriggerFired, err error) {
	s = &armedSentinel{a: a, id: stored.ID, revision: stored.Revision}
	recs, paused, err := a.rt.readTriggers(s.id)
	if err != nil {
		return nil, b, nil, err
	}
	s.paused = paused
	if err := s.readQueue(); err != nil {
		return nil, b, nil, err
	}
	def, err := a.rt.Decoded(stored)
	if err != nil {
		s.problem = err.Error() // shown in place of triggers; what is kept of them stays
		return s, b, nil, nil
	}
	s.overlap = def.Concurrency
	for i, name := range triggerNames(def.Triggers) {
		t := &armedTrigger{s: s, index: i, name: name, def: def.Triggers[i]}
		rec, known := recs[name]
		delete(recs, name)
		if !known {
			rec = triggerRecord{Since: time.Now().UTC(), Position: a.rt.events.End()}
			b.Puts = append(b.Puts, encodePut(bucketTriggers, triggerKey(s.id, name), rec))
		}
		t.rec = rec
		if err := t.readPending(); err != nil {
			return nil, b, nil, err
		}
		t.arm(def, starting)
		s.triggers = append(s.triggers, t)
	}
	for name := range recs {
		puts, fired, err := s.drop(name)
		if err != nil {
			return nil, b, nil, err
		}
		b.Puts = append(b.Puts, puts...)
		dropped = append(dropped, fired...)
	}
	return s, b, dropped, nil
}

// drop forgets a trigger that was edited away. A debounced fire of it will never
// find quiet, so that one is dropped; what is in the queue was admitted and goes
// on.
func (s *armedSentinel) drop(name string) (puts []store.Put, dropped []TriggerFired, err error) {
	gone := &armedTrigger{s: s, name: name, gone: true}
	gone.def.Type = typeOf(name)
	if err := gone.readPending(); err != nil {
		return nil, nil, err
	}
	if gone.pending != nil {
		adm := triggers.Admission{Outcome: triggers.Dropped, Reason: "the trigger was edited away while the fire waited for quiet"}
		dropped = append(dropped, gone.told(adm, gone.pending.Fire.fire()))
	}
	puts, err = s.a.rt.forgetTriggers(s.id, name)
	return puts, dropped, err
}

// run lets the triggers fire, and starts what waits. It is called once.
func (s *armedSentinel) run() {
	s.begun = true
	if s.paused {
		return
	}
	s.a.mu.Lock()
	parent := s.a.ctx
	s.a.mu.Unlock()
	if parent == nil {
		return
	}
	ctx, cancel := context.WithCancelCause(parent)
	s.mu.Lock()
	s.cancelRun = cancel
	retired := s.retired
	for _, t := range s.triggers {
		t.armPending()
	}
	s.mu.Unlock()
	if retired {
		cancel(errDisarmed)
		return
	}
	for _, t := range s.triggers {
		if t.armed == nil {
			s.a.rt.log.Warn("trigger cannot be armed", "sentinel", s.id, "trigger", t.name, "error", t.broken)
			continue
		}
		s.running.Add(1)
		if !s.a.spawn(func(context.Context) { defer s.running.Done(); t.run(ctx) }) {
			s.running.Done()
		}
	}
	if s.waiting.Load() > 0 {
		s.a.spawn(s.drain)
	}
}

// retire ends all decisions.
func (s *armedSentinel) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	for _, t := range s.triggers {
		if t.timer != nil {
			t.timer.Stop()
		}
	}
	if s.cancelRun != nil {
		s.cancelRun(errDisarmed)
	}
}

// settled notes where the triggers of a retired sentinel stopped, once they have
// ended, and returns the commit of the last decision; nil if there was none.
func (s *armedSentinel) settled() *store.Ticket {
	for _, t := range s.triggers {
		t.keepMark(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// end retires the sentinel and returns when its triggers have ended and all that
// was decided can be read in the store.
func (s *armedSentinel) end(ctx context.Context) error {
	s.retire()
	s.running.Wait()
	last := s.settled()
	if last == nil {
		return nil
	}
	return last.Wait(ctx)
}

// policy is what happens to a fire while a run is on.
func (s *armedSentinel) policy(t *armedTrigger) sentinels.Overlap {
	switch {
	case t != nil && t.common.AllowConcurrent != nil && *t.common.AllowConcurrent:
		return sentinels.OverlapParallel
	case t != nil && t.common.AllowConcurrent != nil, s.overlap == "":
		return sentinels.OverlapSkip
	}
	return s.overlap
}

// trigger finds one by its name.
func (s *armedSentinel) trigger(name string) *armedTrigger {
	for _, t := range s.triggers {
		if t.name == name {
			return t
		}
	}
	return nil
}
