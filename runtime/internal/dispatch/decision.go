package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A decision collects what the outcome of a firing changes, in the store and in
// memory. Until it is settled or starts a run, nothing has happened, and it may be
// discarded. The sentinel's lock is held from its creation to its end.
type decision struct {
	t      *armedTrigger
	waited bool // the firing was admitted before, and is due now
	lazy   bool // no caller waits for the commit
	held   int  // see [trigger.Fired]
	rec    record
	puts   []store.Put
	names  []namedRecord // written for the firing's key and replay name
	at     time.Time
	done   []func() // change memory once the commit is enqueued
}

func (t *armedTrigger) decision() *decision {
	return &decision{t: t, rec: t.rec, at: time.Now().UTC()}
}

// start starts the run of a firing: the run's first record, the outcome and all
// counts are one commit. If no run can be started, the firing is refused with the
// reason.
func (dec *decision) start(f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	d, s := dec.t.s.d, dec.t.s
	// Firings that waited were admitted before the trigger ended: they start, as far as maxRuns allows.
	if why := dec.t.common.Ended(dec.rec.Started, time.Time{}); why != "" && !dec.t.gone {
		return dec.settle(triggers.Refused, "", why, f)
	}
	begin, err := s.startOf(dec.t.name, f)
	if err != nil {
		return dec.cannotStart(err, f)
	}
	if f.Key != "" && !dec.t.gone {
		// A trigger that is deleted and written again starts again, so the time when
		// it was armed first is part of the key.
		begin.Key = fmt.Sprintf("trigger/%s/%s/%d/%s", s.id, dec.t.name, dec.rec.Since.UnixMicro(), f.Key)
	}
	undo := *dec // should no run start, the firing has another outcome
	if err := dec.remember(f, keyRecord{Outcome: triggers.Started, Run: begin.ID}); err != nil {
		return triggers.Admission{}, nil, err
	}
	dec.count(triggers.Started, begin.ID, "")
	// Everything that follows from the start commits with the run's first record.
	begin.Puts = dec.all()
	run, ticket, err := d.opt.Runs.Start(begin)
	switch {
	case err != nil:
		*dec = undo
		return dec.cannotStart(err, f)
	case ticket == nil: // the key has left the window of this trigger
		*dec = undo
		return dec.settle(triggers.Duplicate, run, "a run was started for its key before", f)
	}
	adm := triggers.Admission{Outcome: triggers.Started, Run: begin.ID}
	dec.commit(adm, f, ticket)
	return adm, ticket, nil
}

// startOf returns how a firing of the trigger with a name starts a run of the sentinel's newest revision.
func (s *armedSentinel) startOf(name string, f triggers.Firing) (Start, error) {
	newest, found, err := s.d.opt.Definitions.Newest(s.id)
	if err != nil {
		return Start{}, err
	}
	if !found {
		return Start{}, failure.New(abi.NotFound, "no sentinel has the id %q", s.id)
	}
	def, err := newest.Decode()
	if err != nil {
		return Start{}, err
	}
	return Start{ID: s.d.opt.NewRunID(), Definition: def, Revision: newest.Number, Origin: newest.Origin, Event: f.Event, Trigger: name}, nil
}

// cannotStart refuses the firing, unless the error is one of the store or the
// process: then nothing is decided.
func (dec *decision) cannotStart(err error, f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	e := abi.As(err)
	if !errors.As(err, new(sentinels.Problems)) && (e == nil || e.Code == abi.Unavailable) {
		return triggers.Admission{}, nil, err
	}
	dec.t.trouble = err.Error()
	return dec.settle(triggers.Refused, "", "no run can be started: "+err.Error(), f)
}

// settle ends the decision with an outcome that starts nothing now.
func (dec *decision) settle(outcome triggers.Outcome, run sentinels.RunID, reason string, f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	dec.count(outcome, "", reason)
	adm := triggers.Admission{Outcome: outcome, Run: run, Reason: reason}
	lazy := dec.lazy && outcome != triggers.Queued // the queue is read from the store soon
	ticket := dec.enqueueSettled(store.Batch{Puts: dec.all(), Lazy: lazy}, reason)
	dec.commit(adm, f, ticket)
	return adm, ticket, nil
}

// skippedEvent is the data of an event sentinel:ID:skipped.
type skippedEvent struct {
	Sentinel sentinels.ID     `json:"sentinel"`
	Trigger  string           `json:"trigger"`
	Status   triggers.Outcome `json:"status"`
	Since    time.Time        `json:"since"`
	Reason   string           `json:"reason"`
	Run      sentinels.RunID  `json:"run,omitempty"`
}

// enqueueSettled enqueues the commit of a decision, with the event of the first of firings that are
// skipped in a row.
func (dec *decision) enqueueSettled(b store.Batch, reason string) *store.Ticket {
	t, skips := dec.t, dec.rec.Skips
	if skips.Count != 1 || t.rec.Skips.Count != 0 {
		return t.s.d.opt.Store.Enqueue(b)
	}
	e := skippedEvent{Sentinel: t.s.id, Trigger: t.name, Status: triggers.Skipped, Since: skips.Since, Reason: reason, Run: skips.Run}
	return t.s.d.opt.Announce(t.s.id, sentinels.SentinelSkipped, t.name+"/"+skips.Since.Format(time.RFC3339Nano), e, b)
}

// count adds the outcome to the trigger's record.
func (dec *decision) count(outcome triggers.Outcome, run sentinels.RunID, reason string) {
	r := &dec.rec
	r.LastOutcome, r.LastReason = outcome, reason
	if run != "" {
		r.LastRun = run
	}
	switch outcome {
	case triggers.Started:
		r.Started++
		r.Skips = trigger.Skips{}
	case triggers.Queued:
		r.Queued++
		// One that waits for a run which the others were skipped for does not end their row: nothing has run.
		if of := dec.t.s; of.policy(dec.t) != sentinels.OverlapSkip || len(of.d.activeRuns(of.id)) == 0 {
			r.Skips = trigger.Skips{}
		}
	case triggers.Skipped:
		r.Skipped++
	case triggers.Filtered:
		r.Filtered++
	case triggers.Duplicate:
		r.Duplicates++
	case triggers.Refused:
		r.Refused++
	case triggers.Overdue: // not of a firing
	case triggers.Debounced: // counted as coalesced if a later one replaces it
	}
}

// all returns the writes of the commit: those collected and the trigger's record.
// A trigger that was edited away has no record.
func (dec *decision) all() []store.Put {
	if dec.t.gone {
		return dec.puts
	}
	return append(dec.puts, encodePut(bucketTriggers, triggerKey(dec.t.s.id, dec.t.name), dec.rec))
}

// commit applies the decision to memory, now that its commit is enqueued, and
// reports it once it is durable.
func (dec *decision) commit(adm triggers.Admission, f triggers.Firing, ticket *store.Ticket) {
	// A commit that is refused, as when the store closes, leaves memory ahead of
	// the disk. Nothing is decided after that, and the next process reads the disk.
	t := dec.t
	t.rec, t.s.newest = dec.rec, ticket
	for _, n := range dec.names {
		t.s.fresh.hold(n.place, n.rec, ticket)
	}
	for _, fn := range dec.done {
		fn()
	}
	fired, d := t.outcome(adm, f), t.s.d
	fired.Held = dec.held
	ticket.OnDone(func(err error) {
		if err != nil {
			d.log.Error("outcome of a firing is not durable", "sentinel", fired.Sentinel, "trigger", fired.Trigger, "error", err)
			return
		}
		d.opt.Observe(fired)
	})
}

// outcome is what observers receive of a firing.
func (t *armedTrigger) outcome(adm triggers.Admission, f triggers.Firing) trigger.Fired {
	return trigger.Fired{
		Sentinel: t.s.id, Trigger: t.name, Type: t.def.Type, At: f.At, Outcome: adm.Outcome, Run: adm.Run, Reason: adm.Reason, Event: f.Event,
	}
}
