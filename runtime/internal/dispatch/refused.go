package dispatch

import (
	"maps"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Limits of what is kept of the requests that a trigger refuses: reasons, and bytes of one.
const (
	maxReasons = 16
	maxReason  = 200
)

// otherReason counts the reasons beyond maxReasons.
const otherReason = "other reasons"

// refuse counts a request that the trigger did not accept. It is kept in memory only: a sender that is
// refused may be a stranger.
func (t *armedTrigger) refuse(reason string) {
	d := t.s.d
	reason = textcut.Mark(d.opt.Redact.Text(reason), maxReason)
	d.mu.Lock()
	defer d.mu.Unlock()
	key := string(triggerKey(t.s.id, t.name))
	r := d.refused[key]
	if r == nil {
		r = &trigger.Requests{Reasons: map[string]uint64{}}
		d.refused[key] = r
	}
	if _, known := r.Reasons[reason]; !known && len(r.Reasons) >= maxReasons {
		reason = otherReason
	}
	r.Refused++
	r.Reasons[reason]++
	r.Last = d.opt.Now().UTC()
}

// requests returns what the trigger has received, nil if it fires on no requests.
func (t *armedTrigger) requests() *trigger.Requests {
	if _, ok := t.armed.(triggers.Receiver); !ok {
		return nil
	}
	t.s.d.mu.Lock()
	defer t.s.d.mu.Unlock()
	r := t.s.d.refused[string(triggerKey(t.s.id, t.name))]
	if r == nil {
		return &trigger.Requests{}
	}
	out := *r
	out.Reasons = maps.Clone(r.Reasons)
	return &out
}
