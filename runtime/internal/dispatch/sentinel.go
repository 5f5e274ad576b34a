package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// An armedSentinel is one sentinel whose triggers are armed as in one revision of
// its definition. A new revision, a pause and the end of a pause create another
// one, which takes over what waits.
//
// # Concurrency
//
// The lock orders the decisions about firings, so that each sees what the one
// before has decided. Their commits have the same order and are waited for
// outside of the lock.
type armedSentinel struct {
	d         *Dispatcher
	id        sentinels.ID
	revision  int
	saved     eventlog.Chain // of the run that saved the revision
	by        string         // see [Revision.By]
	overlap   sentinels.Overlap
	paused    bool
	until     time.Time // when the pause ends by itself, zero for never
	pausedBy  string
	problem   string // why the definition cannot be read; it has no triggers then
	triggers  []*armedTrigger
	watched   []*armedTrigger         // those that may expect runs: also of a definition that cannot be read
	begun     bool                    // run was called; guarded by Dispatcher.change
	cancelRun context.CancelCauseFunc // of what run started; nil before
	running   sync.WaitGroup

	waiting atomic.Int64 // len(queue), for callers that must not wait for the lock
	fresh   freshKeys

	mu        sync.Mutex
	retired   bool           // nothing is decided any more
	queue     []queuedFiring // without their firings, which may be large
	last      uint64         // number of the newest one in the queue
	bytes     int64          // of the queue in the store
	held      int            // firings in the queue that events of agents and models caused
	heldBytes int64          // of these
	newest    *store.Ticket  // of the newest decision
	delayed   bool           // a drain waits until the rate of the agent permits a start
}

// readArmed prepares the triggers of a definition: it reads or creates the record
// of each, and deletes the records of triggers that are no longer in the
// definition. Nothing of this exists before the batch is committed, and no trigger
// fires before [armedSentinel.run]. The predecessor of the sentinel in this process
// must have ended.
func readArmed(d *Dispatcher, r Revision, starting bool) (s *armedSentinel, b store.Batch, refused []trigger.Fired, err error) {
	s = &armedSentinel{d: d, id: r.ID, revision: r.Number, saved: r.Chain, by: r.By}
	recs, all, err := d.readRecords(s.id)
	if err != nil {
		return nil, b, nil, err
	}
	if all.over(d.opt.Now()) {
		b.Puts = append(b.Puts, store.Put{Bucket: bucketTriggers, Key: sentinelPrefix(s.id), Delete: true})
	} else {
		s.paused, s.until, s.pausedBy = all.Paused, all.Until, all.By
	}
	if err := s.readQueue(); err != nil {
		return nil, b, nil, err
	}
	def, err := r.Decode()
	if err != nil {
		s.problem = err.Error() // shown in place of triggers; their records stay
		for name, rec := range recs {
			t := &armedTrigger{s: s, name: name, rec: rec}
			t.def.Type = typeOf(name)
			s.watched = append(s.watched, t)
		}
		return s, b, nil, nil
	}
	s.overlap = def.Concurrency
	made := made(r, recs)
	for i, name := range triggerNames(def.Triggers) {
		t := &armedTrigger{s: s, index: i, name: name, def: def.Triggers[i]}
		rec, known := recs[name]
		delete(recs, name)
		if !known {
			rec = record{Since: time.Now().UTC(), Hops: made.Hops, Path: made.Path}
			rec.Position, rec.Runs = d.positions(t.def.Event)
			b.Puts = append(b.Puts, encodePut(bucketTriggers, triggerKey(s.id, name), rec))
		}
		t.rec, t.made = rec, rec.chain()
		if err := t.readPending(); err != nil {
			return nil, b, nil, err
		}
		t.arm(r, def, starting)
		s.triggers = append(s.triggers, t)
		s.watched = append(s.watched, t)
	}
	for name := range recs {
		puts, fired, err := s.forget(name)
		if err != nil {
			return nil, b, nil, err
		}
		b.Puts = append(b.Puts, puts...)
		refused = append(refused, fired...)
	}
	return s, b, refused, nil
}

// forget deletes what is stored of a trigger that was edited away. A debounced
// firing of it is refused, because it can no longer become due; queued firings were
// admitted and still start.
func (s *armedSentinel) forget(name string) (puts []store.Put, refused []trigger.Fired, err error) {
	gone := &armedTrigger{s: s, name: name, gone: true}
	gone.def.Type = typeOf(name)
	if err := gone.readPending(); err != nil {
		return nil, nil, err
	}
	if gone.pending != nil {
		adm := triggers.Admission{Outcome: triggers.Refused, Reason: "the trigger was edited away while the firing was debounced"}
		refused = append(refused, gone.outcome(adm, gone.pending.firings[len(gone.pending.firings)-1].firing()))
	}
	puts, err = s.d.forgetTrigger(s.id, name)
	return puts, refused, err
}

// run starts the triggers and what waits. It is called once.
func (s *armedSentinel) run() {
	s.begun = true
	s.d.mu.Lock()
	parent := s.d.ctx
	s.d.mu.Unlock()
	if parent == nil {
		return
	}
	ctx, cancel := context.WithCancelCause(parent)
	s.mu.Lock()
	s.cancelRun = cancel
	retired := s.retired
	for _, t := range s.triggers {
		if !s.paused {
			t.armPending()
		}
	}
	s.mu.Unlock()
	if retired {
		cancel(errDisarmed)
		return
	}
	for _, t := range s.watched {
		s.start(ctx, t.watch)
	}
	if s.paused && !s.until.IsZero() {
		s.d.resumeLater(ctx, s.id, s.until)
	}
	if s.paused {
		return
	}
	for _, t := range s.triggers {
		if t.armed == nil {
			s.d.log.Warn("trigger cannot be armed", "sentinel", s.id, "trigger", t.name, "error", t.broken)
			continue
		}
		s.start(ctx, t.run)
	}
	if s.waiting.Load() > 0 {
		s.d.spawn(s.drain)
	}
}

// start starts a goroutine of the sentinel, which ends with ctx.
func (s *armedSentinel) start(ctx context.Context, do func(context.Context)) {
	s.running.Add(1)
	if !s.d.spawn(func(context.Context) { defer s.running.Done(); do(ctx) }) {
		s.running.Done()
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

// settled notes how far the triggers of a retired sentinel have read, once they
// have ended, and returns the commit of the last decision; nil if there was none.
func (s *armedSentinel) settled() *store.Ticket {
	for _, t := range s.triggers {
		for log := range logs {
			t.keepMark(log, 1)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// end retires the sentinel and returns when its triggers have ended and the store
// has all decisions.
func (s *armedSentinel) end(ctx context.Context) error {
	s.retire()
	s.running.Wait()
	last := s.settled()
	if last == nil {
		return nil
	}
	return last.Wait(ctx)
}

// policy is the overlap policy for firings of a trigger, nil for one that is gone.
func (s *armedSentinel) policy(t *armedTrigger) sentinels.Overlap {
	switch {
	case t != nil && t.common.AllowConcurrent != nil && *t.common.AllowConcurrent:
		return sentinels.OverlapParallel
	case t != nil && t.common.AllowConcurrent != nil:
		return sentinels.OverlapSkip
	case s.overlap != "":
		return s.overlap
	case t != nil:
		if _, ok := t.armed.(triggers.Joiner); ok {
			return overlapJoin
		}
	}
	return sentinels.OverlapSkip
}

// overlapJoin is the policy of a [triggers.Joiner] whose definition has none: a firing
// during a run is queued, and joins the one that is queued already.
const overlapJoin sentinels.Overlap = "join"

// trigger returns the trigger with a name, nil if there is none.
func (s *armedSentinel) trigger(name string) *armedTrigger {
	for _, t := range s.triggers {
		if t.name == name {
			return t
		}
	}
	return nil
}
