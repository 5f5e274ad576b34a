package dispatch

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Triggers returns the triggers of a sentinel in the order of its definition, or
// of all sentinels if id is empty, each with as many planned times as upcoming says. It
// also works while nothing is armed.
func (d *Dispatcher) Triggers(id sentinels.ID, upcoming int) ([]trigger.Info, error) {
	stored, err := d.revisions(id)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var out []trigger.Info
	for _, r := range stored {
		s := d.sentinel(r.ID)
		armed := s != nil
		if !armed {
			// Kinds know when they would fire without being run. Nothing of this is
			// committed.
			if s, _, _, err = readArmed(d, r, false); err != nil {
				return nil, err
			}
		}
		out = append(out, s.infos(now, armed, upcoming)...)
	}
	return out, nil
}

// revisions returns the newest revision of one definition, or of all.
func (d *Dispatcher) revisions(id sentinels.ID) ([]Revision, error) {
	if id == "" {
		return d.opt.Definitions.All()
	}
	r, found, err := d.opt.Definitions.Newest(id)
	if err != nil || !found {
		return nil, err
	}
	return []Revision{r}, nil
}

func (s *armedSentinel) infos(now time.Time, armed bool, upcoming int) []trigger.Info {
	if s.problem != "" {
		return []trigger.Info{{Sentinel: s.id, Index: -1, Problem: s.problem, Paused: s.paused, PausedUntil: s.until, PausedBy: s.pausedBy}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]trigger.Info, 0, len(s.triggers))
	for _, t := range s.triggers {
		waiting := 0
		for i := range s.queue {
			if s.queue[i].of(t) {
				waiting++
			}
		}
		out = append(out, t.info(now, armed, waiting, upcoming))
	}
	return out
}

// info describes the trigger as it is now. The caller holds the sentinel's lock.
func (t *armedTrigger) info(now time.Time, armed bool, queued, upcoming int) trigger.Info {
	i := trigger.Info{
		Sentinel: t.s.id, Index: t.index, Name: t.name, Type: t.def.Type, Detail: t.s.d.opt.Kinds.Detail(t.def),
		Armed: armed && t.armed != nil && !t.s.paused, Paused: t.s.paused, PausedUntil: t.s.until, PausedBy: t.s.pausedBy, Problem: t.broken,
		LastFire: t.rec.LastFire, LastOutcome: t.rec.LastOutcome, LastReason: t.rec.LastReason, LastRun: t.rec.LastRun,
		Counts: t.rec.Counts, Waiting: queued, Skips: t.rec.Skips,
		Requests: t.requests(),
	}
	if i.Problem == "" {
		i.Problem = t.trouble
	}
	if c, ok := t.armed.(triggers.Checker); ok {
		if err := c.Ready(); err != nil {
			i.Armed, i.Problem = false, err.Error()
		}
	}
	i.Ended = t.ended()
	i.Armed = i.Armed && i.Ended == ""
	if t.pending != nil {
		i.Waiting++
	}
	if p, ok := t.armed.(triggers.Planner); ok && !t.s.paused {
		started := t.rec.Started + uint64(queued) // those in the queue take what maxRuns leaves before any planned time
		for at := p.Next(now); !at.IsZero() && t.common.Ended(started+uint64(len(i.Upcoming)), at) == ""; at = p.Next(at) {
			if i.Next.IsZero() {
				i.Next = at
			}
			if len(i.Upcoming) == upcoming {
				break
			}
			i.Upcoming = append(i.Upcoming, at)
		}
	}
	return i
}
