package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxParallel is how many runs of one sentinel may be on before those that the
// policy would start beside them wait in the queue. A parked run takes about
// 20 KB, so a storm of events costs 20 MB and not all there is.
const maxParallel = 1000

// A firing is one fire while it is decided what becomes of it.
type firing struct {
	triggers.Firing
	// trouble is why it starts nothing whatever else holds, "" for nothing;
	// filtered says that this is what its author wanted.
	trouble  string
	filtered bool
}

// A draft is a decision that is not made yet: what will be kept of the trigger
// and what commits with it. If it is thrown away nothing has happened.
type draft struct {
	t      *armedTrigger
	waited bool // the fire was admitted before and is due now
	lazy   bool // no caller waits for the commit
	rec    triggerRecord
	puts   []store.Put
	names  []namedRecord // what is written of the fire's key and replay name
	at     time.Time
	// done changes what is in memory once the decision is on its way to disk.
	done []func()
}

func (t *armedTrigger) draft() *draft {
	return &draft{t: t, rec: t.rec, at: time.Now().UTC()}
}

// fire admits what the trigger fired. A trigger that keeps its progress waits
// for the disk only now and then, so that a storm of events is bound by what is
// decided: outcome and progress are one commit, so a crash that forgets the one
// forgets the other, and the fire comes again.
func (t *armedTrigger) fire(ctx context.Context, f triggers.Firing) (triggers.Admission, error) {
	if err := t.s.a.rt.writable(); err != nil {
		return triggers.Admission{}, err
	}
	lazy := f.State != nil && t.unwaited < maxUnwaited
	adm, ticket, err := t.admit(ctx, f, lazy)
	if err != nil {
		return adm, err
	}
	if lazy {
		t.unwaited++
		return adm, nil
	}
	t.unwaited = 0
	return adm, ticket.Wait(ctx)
}

// maxUnwaited bounds how far a trigger is ahead of the disk, in fires.
const maxUnwaited = 64

// admit decides what becomes of a fire. The ticket is that of the commit which
// makes it so; lazy says that no caller waits for it.
func (t *armedTrigger) admit(ctx context.Context, f triggers.Firing, lazy bool) (triggers.Admission, *store.Ticket, error) {
	now, err := t.judge(ctx, f) // outside the lock: a filter may take a second
	if err != nil {
		return triggers.Admission{}, nil, err
	}
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || s.paused {
		return triggers.Admission{}, nil, errDisarmed
	}
	t.trouble, t.broken = now.problem(), ""
	return t.decide(now, lazy)
}

// problem is what a person has to mend, "" for nothing.
func (f *firing) problem() string {
	if f.filtered {
		return ""
	}
	return f.trouble
}

// judge looks at the fire itself: whether its chain of events ends here, and
// what the filter says.
func (t *armedTrigger) judge(ctx context.Context, f triggers.Firing) (*firing, error) {
	now := &firing{Firing: f}
	if now.At.IsZero() {
		now.At = time.Now().UTC()
	}
	if e := f.Event; e != nil && e.Hops >= t.s.a.rt.limits.Hops {
		next := eventlog.ChainOf(e).Through(t.s.id)
		now.trouble = next.Refuse(e.Name, t.s.a.rt.limits.Hops).Message
		return now, nil
	}
	if t.common.Filter == "" {
		return now, nil
	}
	v, err := t.s.a.rt.cond.Eval(ctx, t.common.Filter, func(name string) (json.RawMessage, bool) {
		if name != "event" || f.Event == nil {
			return nil, false
		}
		return eventValue(f.Event), true
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil: // never taken for false: a person has to see it
		now.trouble = "filter: " + asError(err, abi.Plugin).Message
	case !v.Truthy:
		now.trouble, now.filtered = "the filter does not hold", true
	}
	return now, nil
}

// decide is the one place where it is said what becomes of a new fire. The
// caller holds the sentinel's lock.
func (t *armedTrigger) decide(f *firing, lazy bool) (triggers.Admission, *store.Ticket, error) {
	d := t.draft()
	d.lazy = lazy
	d.rec.Fired++
	d.rec.Missed += uint64(max(f.Missed, 0))
	d.rec.LastFire = d.at
	if f.State != nil {
		d.rec.State = f.State
	}
	before, reason, err := d.repeated(f.Firing)
	switch {
	case err != nil:
		return triggers.Admission{}, nil, err
	case reason != "":
		return d.settle(triggers.Duplicate, before.Run, reason, f.Firing)
	case f.filtered:
		return d.settle(triggers.Filtered, "", "", f.Firing)
	case f.trouble != "":
		return d.settle(triggers.Dropped, "", f.trouble, f.Firing)
	case t.common.DebounceMs > 0:
		return d.debounce(f.Firing)
	}
	return d.overlap(f.Firing)
}

// overlap is what becomes of a fire that is due now, be it new or debounced.
func (d *draft) overlap(f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	s := d.t.s
	on := s.a.runsOn(s.id)
	free := len(on) == 0 && len(s.queue) == 0
	switch policy := s.policy(d.t); {
	case free, policy == sentinels.OverlapParallel && len(on) < maxParallel:
		return d.start(f)
	case policy == sentinels.OverlapSkip:
		reason := "fires before it wait in the queue"
		if len(on) > 0 {
			reason = s.a.describe(on[0])
		}
		if err := d.remember(f, keyRecord{Outcome: triggers.Skipped}); err != nil {
			return triggers.Admission{}, nil, err
		}
		return d.settle(triggers.Skipped, "", reason, f)
	case policy == sentinels.OverlapRestart:
		return d.enqueue(f, true)
	}
	return d.enqueue(f, false)
}

// start begins the run of a fire; its first record, the outcome and all counts
// are one commit. A run that cannot be begun drops the fire and says why.
func (d *draft) start(f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	rt, s := d.t.s.a.rt, d.t.s
	trouble := func(err error) (triggers.Admission, *store.Ticket, error) {
		e := abi.As(err)
		if !errors.As(err, new(sentinels.Problems)) && (e == nil || e.Code == abi.Unavailable) {
			return triggers.Admission{}, nil, err // the store or the process: nothing is decided
		}
		d.t.trouble = err.Error()
		return d.settle(triggers.Dropped, "", "no run can be started: "+err.Error(), f)
	}
	stored, err := rt.Definition(s.id)
	if err != nil {
		return trouble(err)
	}
	def, err := rt.Decoded(stored)
	if err != nil {
		return trouble(err)
	}
	opt := StartOptions{Event: f.Event, Workspace: rt.opt.Workspace, Revision: stored.Revision, id: newRunID()}
	if f.Key != "" && !d.t.gone {
		// A trigger that is deleted and written again starts again, so when it
		// began is part of the key.
		opt.Key = fmt.Sprintf("trigger/%s/%s/%d/%s", s.id, d.t.name, d.rec.Since.UnixMicro(), f.Key)
		first, found, err := rt.startedBefore(opt.Key)
		if err != nil {
			return triggers.Admission{}, nil, err
		}
		if found { // its key has left the window
			return d.settle(triggers.Duplicate, first, "a run was started for its key before", f)
		}
	}
	undo := *d // should the run not begin, the fire is dropped in its place
	if err := d.remember(f, keyRecord{Outcome: triggers.Started, Run: opt.id}); err != nil {
		return triggers.Admission{}, nil, err
	}
	d.count(triggers.Started, opt.id, "")
	// Everything that follows from the start commits with the run's first record.
	var ticket *store.Ticket
	opt.puts = d.all()
	opt.began = func(t *store.Ticket) { ticket = t }
	if _, err := rt.startRun(rt.ctx, def, opt); err != nil {
		*d = undo
		return trouble(err)
	}
	adm := triggers.Admission{Outcome: triggers.Started, Run: opt.id}
	d.commit(adm, f, ticket)
	return adm, ticket, nil
}

// settle ends the draft with an outcome that starts nothing now.
func (d *draft) settle(outcome triggers.Outcome, run sentinels.RunID, reason string, f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	d.count(outcome, "", reason)
	adm := triggers.Admission{Outcome: outcome, Run: run, Reason: reason}
	lazy := d.lazy && outcome != triggers.Queued // what is in the queue is soon read from there
	ticket := d.t.s.a.rt.db.Enqueue(store.Batch{Puts: d.all(), Lazy: lazy})
	d.commit(adm, f, ticket)
	return adm, ticket, nil
}

// count adds the outcome to what is kept.
func (d *draft) count(outcome triggers.Outcome, run sentinels.RunID, reason string) {
	r := &d.rec
	r.LastOutcome, r.LastReason = outcome, reason
	if run != "" {
		r.LastRun = run
	}
	switch outcome {
	case triggers.Started:
		r.Started++
	case triggers.Queued:
		r.Queued++
	case triggers.Skipped:
		r.Skipped++
	case triggers.Filtered:
		r.Filtered++
	case triggers.Duplicate:
		r.Duplicates++
	case triggers.Dropped:
		r.Dropped++
	case triggers.Debounced: // counted when a later one takes its place
	}
}

// all is what commits: the draft's writes and the trigger's record. A trigger
// that was edited away has none.
func (d *draft) all() []store.Put {
	if d.t.gone {
		return d.puts
	}
	return append(d.puts, encodePut(bucketTriggers, triggerKey(d.t.s.id, d.t.name), d.rec))
}

// commit makes the decision what is in memory, now that it is on its way, and
// has it told once it is durable.
func (d *draft) commit(adm triggers.Admission, f triggers.Firing, ticket *store.Ticket) {
	// A commit that is refused, as when the store closes, leaves memory ahead of
	// the disk; nothing is decided after that, and the next process reads the disk.
	d.t.rec, d.t.s.newest = d.rec, ticket
	for _, n := range d.names {
		d.t.s.fresh.hold(n.place, n.rec, ticket)
	}
	for _, fn := range d.done {
		fn()
	}
	told := d.t.told(adm, f)
	ticket.OnDone(func(err error) {
		if err != nil {
			d.t.s.a.rt.log.Error("outcome of a fire is not durable", "sentinel", told.Sentinel, "trigger", told.Trigger, "error", err)
			return
		}
		d.t.s.a.rt.tellTrigger(told)
	})
}

func (t *armedTrigger) told(adm triggers.Admission, f triggers.Firing) TriggerFired {
	return TriggerFired{
		Sentinel: t.s.id, Trigger: t.name, Type: t.def.Type, At: f.At, Outcome: adm.Outcome, Run: adm.Run, Reason: adm.Reason, Event: f.Event,
	}
}

func (rt *Runtime) tellTrigger(f TriggerFired) {
	if rt.opt.Observer.Trigger != nil {
		rt.opt.Observer.Trigger(f)
	}
}
