package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A readMark says that the log has nothing for a pattern between two positions.
// A trigger keeps the position of its newest event. Without the mark one that
// waits for a rare event would find, after a restart, that the log has dropped
// others behind it, and count them as missed.
type readMark struct {
	Pattern string `json:"pattern"`
	After   uint64 `json:"after"`
	Through uint64 `json:"through"`
	Lost    int    `json:"lost,omitempty"` // events between them that were gone, and are not counted as missed yet
}

// noteEvery is how often a trigger that waits notes how far it has read; how far
// the log must have moved for that depends on how much it keeps.
const noteEvery = time.Minute

// An eventReader is the log as one trigger reads it.
type eventReader struct {
	t *armedTrigger

	mu   sync.Mutex
	mark readMark
}

var _ triggers.Events = (*eventReader)(nil)

// Position implements [triggers.Events].
func (r *eventReader) Position() uint64 { return r.t.s.a.rt.events.End() }

// Next implements [triggers.Events].
func (r *eventReader) Next(ctx context.Context, pattern string, after uint64) (e sentinels.Event, position uint64, lost int, err error) {
	log := r.t.s.a.rt.events
	for {
		mark := r.markOf(pattern, after)
		limited, cancel := context.WithTimeout(ctx, noteEvery)
		f, err := log.Wait(limited, pattern, mark.Through)
		cancel()
		lost = mark.Lost + f.Lost
		if f.Offset != 0 || err != nil && limited.Err() == nil {
			return f.Event, f.Offset, lost, err
		}
		r.note(readMark{pattern, after, f.Through, lost})
		if ctx.Err() != nil {
			return e, 0, lost, context.Cause(ctx)
		}
		r.t.keepMark(log.Quarter())
	}
}

// markOf is how far it is known what is behind after for the pattern.
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

// marked returns the mark and whether it is at least so much further than old.
func (r *eventReader) marked(old readMark, further uint64) (readMark, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.mark
	if m.Pattern == old.Pattern && m.After == old.After {
		return m, m.Through >= old.Through+further
	}
	return m, m.Through >= m.After+further
}
