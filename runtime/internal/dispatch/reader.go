package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A readMark records that the log has no match for a pattern between two positions.
// A trigger keeps the position of its newest event. Without the mark a trigger
// that waits for a rare event would find, after a restart, that the log has
// removed others behind that position, and would count them as missed.
type readMark struct {
	Pattern string `json:"pattern"`
	After   uint64 `json:"after"`
	Through uint64 `json:"through"`
	Lost    int    `json:"lost,omitempty"` // events between them that were removed unread, and are not counted as missed yet
}

// noteEvery is how often a waiting trigger notes how far it has read. The log must
// also have moved by a quarter of what it holds.
const noteEvery = time.Minute

// An eventReader is the event log as one trigger reads it.
type eventReader struct {
	t *armedTrigger

	mu   sync.Mutex
	mark readMark
}

var _ triggers.Events = (*eventReader)(nil)

// Position implements [triggers.Events].
func (r *eventReader) Position() uint64 { return r.t.s.d.opt.Events.Position(r.t.def.Event) }

// Next implements [triggers.Events].
func (r *eventReader) Next(ctx context.Context, pattern string, source sentinels.EventSource, after uint64) (e sentinels.Event, position uint64, lost int, err error) {
	log := r.t.s.d.opt.Events
	for {
		mark := r.markOf(pattern, after)
		limited, cancel := context.WithTimeout(ctx, noteEvery)
		found, err := log.Await(limited, pattern, mark.Through)
		cancel()
		lost = mark.Lost + found.Lost
		if found.Position != 0 && err == nil && (r.t.s.caused(&found.Event) || !sentinels.TakesEvent(pattern, source, &found.Event, r.t.s.d.opt.Definitions.Stored)) {
			r.note(readMark{pattern, after, found.Position, lost})
			continue
		}
		if found.Position != 0 || err != nil && limited.Err() == nil {
			return found.Event, found.Position, lost, err
		}
		r.note(readMark{pattern, after, found.Through, lost})
		if ctx.Err() != nil {
			return e, 0, lost, context.Cause(ctx)
		}
		r.t.keepMark(log.Quarter(pattern))
	}
}

// markOf returns the mark for a pattern and a position, an empty one if there is
// none.
func (r *eventReader) markOf(pattern string, after uint64) readMark {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.mark; m.Pattern == pattern && m.After == after && m.Through > after {
		return m
	}
	return readMark{Pattern: pattern, After: after, Through: after}
}

func (r *eventReader) note(m readMark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark = m
}

// marked returns the mark and whether it is at least distance events beyond old.
func (r *eventReader) marked(old readMark, distance uint64) (readMark, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.mark
	if m.Pattern == old.Pattern && m.After == old.After {
		return m, m.Through >= old.Through+distance
	}
	return m, m.Through >= m.After+distance
}

// caused reports whether an event is one of a run that the sentinel caused: of its own
// runs, of their children, or of what their events started. Such events do not fire it,
// because it would fire itself for ever.
func (s *armedSentinel) caused(e *sentinels.Event) bool {
	return sentinels.FromEngine(e.Source) && slices.Contains(e.Path, string(s.id))
}
