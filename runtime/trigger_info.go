package runtime

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TriggerInfo is what one trigger of a sentinel waits for, and what became of
// all that it fired.
type TriggerInfo struct {
	Sentinel sentinels.ID `json:"sentinel"`
	Index    int          `json:"index"` // in the definition; -1 for a definition that cannot be read
	// Name is the same as long as the trigger is not edited, whatever else is.
	Name   string `json:"name,omitempty"`
	Type   string `json:"type,omitempty"`
	Detail string `json:"detail,omitempty"` // in words: the schedule, the pattern, the paths
	Armed  bool   `json:"armed"`            // it fires
	Paused bool   `json:"paused,omitempty"`
	// Problem says why it does not fire, or why its newest fire was of no use.
	Problem string `json:"problem,omitempty"`

	Next        time.Time        `json:"next,omitzero"` // the planned time; zero without a schedule, and while it is paused
	LastFire    time.Time        `json:"lastFire,omitzero"`
	LastOutcome triggers.Outcome `json:"lastOutcome,omitempty"`
	LastReason  string           `json:"lastReason,omitempty"`
	LastRun     sentinels.RunID  `json:"lastRun,omitempty"` // the newest that it started

	TriggerCounts
	Waiting int `json:"waiting"` // fires in the queue and the one that waits for quiet
}

// Triggers returns the triggers of a sentinel in the order of its definition, or
// of all sentinels if id is empty. It also answers while nothing is armed.
func (rt *Runtime) Triggers(id sentinels.ID) ([]TriggerInfo, error) {
	stored, err := rt.storedFor(id)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var out []TriggerInfo
	for _, d := range stored {
		s := rt.arming.sentinel(d.ID)
		armed := s != nil
		if !armed {
			// The kinds tell when they would fire without being run.
			if s, err = rt.arming.preview(d); err != nil {
				return nil, err
			}
		}
		out = append(out, s.infos(now, armed)...)
	}
	return out, nil
}

// storedFor returns one definition, or all.
func (rt *Runtime) storedFor(id sentinels.ID) ([]Stored, error) {
	if id == "" {
		return rt.Definitions()
	}
	d, err := rt.Definition(id)
	return []Stored{d}, err
}

func (s *armedSentinel) infos(now time.Time, armed bool) []TriggerInfo {
	if s.problem != "" {
		return []TriggerInfo{{Sentinel: s.id, Index: -1, Problem: s.problem, Paused: s.paused}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]TriggerInfo, 0, len(s.triggers))
	for _, t := range s.triggers {
		waiting := 0
		for i := range s.queue {
			if s.queue[i].of(t) {
				waiting++
			}
		}
		out = append(out, t.info(now, armed, waiting))
	}
	return out
}

// info is the trigger as it is now. The caller holds the sentinel's lock.
func (t *armedTrigger) info(now time.Time, armed bool, queued int) TriggerInfo {
	i := TriggerInfo{
		Sentinel: t.s.id, Index: t.index, Name: t.name, Type: t.def.Type, Detail: detail(t.def),
		Armed: armed && t.armed != nil && !t.s.paused, Paused: t.s.paused, Problem: t.broken,
		LastFire: t.rec.LastFire, LastOutcome: t.rec.LastOutcome, LastReason: t.rec.LastReason, LastRun: t.rec.LastRun,
		TriggerCounts: t.rec.TriggerCounts, Waiting: queued,
	}
	if i.Problem == "" {
		i.Problem = t.trouble
	}
	if t.pending != nil {
		i.Waiting++
	}
	if p, ok := t.armed.(triggers.Planner); ok && !t.s.paused {
		i.Next = p.Next(now)
	}
	return i
}
