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

// logs is the number of event logs.
const logs = 2

// An eventReader is the event logs as one trigger reads them.
type eventReader struct {
	t        *armedTrigger
	patterns []string // of each log

	mu    sync.Mutex
	marks [logs]readMark // of each log
}

var _ triggers.Events = (*eventReader)(nil)

// newEventReader returns the reader of a trigger, with the marks that are stored of it.
func newEventReader(t *armedTrigger) *eventReader {
	return &eventReader{t: t, patterns: sentinels.PatternsByLog(t.def.Event), marks: [logs]readMark{t.rec.Read, t.rec.ReadRuns}}
}

// positions returns the newest positions of the logs that have the events of patterns; runs is 0 unless both have some.
func (d *Dispatcher) positions(patterns string) (first, runs uint64) {
	of := sentinels.PatternsByLog(patterns)
	if len(of) == 0 {
		return d.opt.Events.Position(patterns), 0
	}
	if len(of) > 1 {
		runs = d.opt.Events.Position(of[1])
	}
	return d.opt.Events.Position(of[0]), runs
}

// Next implements [triggers.Events].
func (r *eventReader) Next(ctx context.Context, pattern string, source sentinels.EventSource, after uint64) (e sentinels.Event, position uint64, lost int, err error) {
	log, of := r.t.s.d.opt.Events, max(0, slices.Index(r.patterns, pattern))
	for {
		mark := r.markOf(of, pattern, after)
		limited, cancel := context.WithTimeout(ctx, noteEvery)
		found, err := log.Await(limited, pattern, mark.Through)
		cancel()
		lost = mark.Lost + found.Lost
		if found.Position != 0 && err == nil && (r.t.s.caused(&found.Event) || !sentinels.TakesEvent(pattern, source, &found.Event, r.t.s.d.opt.Definitions.Stored)) {
			r.note(of, readMark{pattern, after, found.Position, lost})
			continue
		}
		if found.Position != 0 || err != nil && limited.Err() == nil {
			return found.Event, found.Position, lost, err
		}
		r.note(of, readMark{pattern, after, found.Through, lost})
		if ctx.Err() != nil {
			return e, 0, lost, context.Cause(ctx)
		}
		r.t.keepMark(of, log.Quarter(pattern))
	}
}

// markOf returns the mark of a log for a pattern and a position, an empty one if there is
// none.
func (r *eventReader) markOf(log int, pattern string, after uint64) readMark {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.marks[log]; m.Pattern == pattern && m.After == after && m.Through > after {
		return m
	}
	return readMark{Pattern: pattern, After: after, Through: after}
}

func (r *eventReader) note(log int, m readMark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks[log] = m
}

// marked returns the mark of a log and whether it is at least distance events beyond old.
func (r *eventReader) marked(log int, old readMark, distance uint64) (readMark, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.marks[log]
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
