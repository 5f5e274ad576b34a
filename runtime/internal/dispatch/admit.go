package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxParallel is how many active runs of one sentinel there may be before the
// policy parallel queues firings. A parked run takes about 20 KB, so a storm of
// events costs at most 20 MB.
const maxParallel = 1000

// maxUnwaited limits how far a trigger is ahead of the disk, in firings.
const maxUnwaited = 64

// A judged firing is one whose filter was evaluated and whose chain of events was
// checked.
type judged struct {
	triggers.Firing
	trouble  string // why it starts nothing, "" if it may
	filtered bool   // the trouble is what the author of the filter wanted
}

// problem is what a person has to repair, "" for nothing.
func (f *judged) problem() string {
	if f.filtered {
		return ""
	}
	return f.trouble
}

// fire admits a firing of the trigger. A trigger that keeps its progress waits for
// the disk only at times, so that the disk does not limit a storm of events:
// outcome and progress are one commit, so a crash loses both, and the kind fires
// again.
func (t *armedTrigger) fire(ctx context.Context, f triggers.Firing) (triggers.Admission, error) {
	if err := t.s.d.opt.Writable(); err != nil {
		return triggers.Admission{}, err
	}
	if t.stopIfEnded() {
		return triggers.Admission{}, errDisarmed
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

// admit decides the outcome of a firing and returns the ticket of its commit. lazy
// means that no caller waits for that.
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

// judge checks the firing itself: the length of its chain of events, and the
// filter, which sees the event as it came. All that comes after sees it without secrets.
func (t *armedTrigger) judge(ctx context.Context, f triggers.Firing) (*judged, error) {
	opt := &t.s.d.opt
	now := &judged{Firing: t.s.d.withoutSecrets(f)}
	if now.At.IsZero() {
		now.At = time.Now().UTC()
	}
	if f.Event != nil {
		t.traceCause(&now.Firing)
		if now.trouble = opt.ChainProblem(t.s.id, now.Event); now.trouble != "" {
			return now, nil
		}
	}
	if t.common.Filter == "" {
		return now, nil
	}
	holds, err := opt.Filter(ctx, t.s.id, t.common.Filter, f.Event)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil: // never counts as false: a person has to repair it
		now.trouble = "filter: " + messageOf(err)
	case !holds:
		now.trouble, now.filtered = "the filter does not hold", true
	}
	return now, nil
}

// withoutSecrets returns a firing as queues, records of runs and readers have it. A request
// may carry a secret of this host. A key with one becomes its digest, so that it stays unique.
func (d *Dispatcher) withoutSecrets(f triggers.Firing) triggers.Firing {
	for _, key := range []*string{&f.Key, &f.Replay} {
		if d.opt.Redact.Text(*key) != *key {
			*key = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(*key)))
		}
	}
	if f.Event == nil {
		return f
	}
	clean := *f.Event
	clean.Data = d.opt.Redact.JSON(clean.Data)
	for _, text := range []*string{&clean.ID, &clean.Name, &clean.Source, &clean.Subject} {
		*text = d.opt.Redact.Text(*text)
	}
	f.Event = &clean
	return f
}

// decide is the only place that decides the outcome of a new firing. The caller
// holds the sentinel's lock.
func (t *armedTrigger) decide(f *judged, lazy bool) (triggers.Admission, *store.Ticket, error) {
	dec := t.decision()
	dec.lazy = lazy
	dec.rec.Fired++
	dec.rec.Missed += uint64(max(f.Missed, 0))
	dec.rec.LastFire = dec.at
	if f.State != nil {
		dec.rec.State = f.State
	}
	before, reason, err := dec.repeated(f.Firing)
	switch {
	case err != nil:
		return triggers.Admission{}, nil, err
	case reason != "":
		return dec.settle(triggers.Duplicate, before.Run, reason, f.Firing)
	case t.ended() != "": // a request; the other kinds do not get here
		return dec.settle(triggers.Refused, "", t.ended(), f.Firing)
	case f.filtered:
		return dec.settle(triggers.Filtered, "", "", f.Firing)
	case f.trouble != "":
		return dec.settle(triggers.Refused, "", f.trouble, f.Firing)
	}
	delay, series := t.ownDelay(f.Firing)
	switch {
	case series >= ownIgnored:
		dec.rec.Own++
		if err := dec.remember(f.Firing, keyRecord{Outcome: triggers.Skipped}); err != nil {
			return triggers.Admission{}, nil, err
		}
		return dec.settle(triggers.Skipped, "", fmt.Sprintf("the last %d runs made such changes themselves; %s", series, ownHint), f.Firing)
	case delay > 0:
		dec.rec.Own++
		return dec.debounce(f.Firing, delay, fmt.Sprintf("the last %d runs seem to make such changes themselves: waits %s for a change at another time; %s", series, delay, ownHint))
	case t.common.DebounceMs > 0, t.pending != nil:
		return dec.debounce(f.Firing, 0, "")
	}
	return dec.overlap(f.Firing)
}

// skip counts a firing that is skipped because of the active runs, and returns the reason with
// the others before it.
func (dec *decision) skip(f triggers.Firing, active []sentinels.RunID, reason string) string {
	skips := &dec.rec.Skips
	if skips.Count == 0 {
		skips.Since = f.At.UTC()
	}
	skips.Count, skips.Run = skips.Count+1, ""
	if len(active) > 0 {
		skips.Run = active[0]
	}
	if skips.Count > 1 {
		reason += fmt.Sprintf("; %d firings in a row were skipped, since %s", skips.Count, skips.Since.Format(time.RFC3339))
	}
	return reason
}

// overlap applies the overlap policy to a firing that is due, new or debounced.
func (dec *decision) overlap(f triggers.Firing) (triggers.Admission, *store.Ticket, error) {
	s := dec.t.s
	active := s.d.activeRuns(s.id)
	undecided := s.d.undecided(active)
	free := len(active) == 0 && len(s.queue) == 0
	policy := s.policy(dec.t)
	parallel := policy == sentinels.OverlapParallel && len(active) < maxParallel
	switch {
	case (free || parallel) && (s.delayed || s.d.rates.Take(s.by) > 0):
		return dec.enqueue(f, policy, s.d.held(s.by)) // also with skip, since no run is active that would do its work
	case free:
		return dec.start(f)
	case parallel:
		for _, run := range undecided {
			dec.done = append(dec.done, func() { s.d.spawn(func(ctx context.Context) { s.endLogged(ctx, run) }) })
		}
		return dec.start(f)
	case len(undecided) > 0 && policy != sentinels.OverlapRestart && (policy != sentinels.OverlapSkip || len(s.queue) == 0):
		return dec.enqueue(f, policy, fmt.Sprintf("run %s waits for a decision about %s, which was interrupted, and is ended for it", undecided[0], s.d.opt.Runs.Undecided(undecided[0])))
	case policy == sentinels.OverlapSkip:
		reason := "earlier firings are queued"
		if len(active) > 0 {
			why, until := s.d.describe(s.id, f, active)
			if until != "" && len(s.queue) == 0 {
				return dec.enqueue(f, policy, until)
			}
			reason = cmp.Or(why, reason)
		} else if s.delayed {
			reason = s.d.held(s.by)
			dec.held = int(dec.rec.Skips.Count) + 1
		}
		reason = dec.skip(f, active, reason)
		if err := dec.remember(f, keyRecord{Outcome: triggers.Skipped}); err != nil {
			return triggers.Admission{}, nil, err
		}
		return dec.settle(triggers.Skipped, "", reason, f)
	case policy == sentinels.OverlapRestart:
		return dec.enqueue(f, policy, "the active run is stopped for it")
	case len(active) == 0 && s.delayed:
		return dec.enqueue(f, policy, s.d.held(s.by))
	default:
		return dec.enqueue(f, policy, "a run is active")
	}
}
