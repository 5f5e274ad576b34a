package eventlog

import (
	"context"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A subscription waits for the next event that matches its pattern.
type subscription struct {
	match  uint64        // offset of the first one that came; guarded by the log's mutex
	signal chan struct{} // capacity 1
}

// wake signals the subscriptions that match an event of this name. They are kept
// by pattern, so that the cost of an event grows with the number of different
// wildcard patterns and not with that of subscriptions it does not concern. l.mu
// is held.
func (l *Log) wake(offset uint64, name string) {
	l.wakePattern(offset, name)
	for pattern := range l.wild {
		if sentinels.MatchEvent(pattern, name) {
			l.wakePattern(offset, pattern)
		}
	}
}

func (l *Log) wakePattern(offset uint64, pattern string) {
	for s := range l.subs[pattern] {
		if s.match != 0 {
			continue
		}
		s.match = offset
		s.signal <- struct{}{} // never blocks: it is sent once
	}
}

// subscribe adds a subscription. l.mu is held.
func (l *Log) subscribe(pattern string) *subscription {
	s := &subscription{signal: make(chan struct{}, 1)}
	if l.subs[pattern] == nil {
		l.subs[pattern] = map[*subscription]struct{}{}
		if strings.ContainsAny(pattern, "* ") || strings.HasSuffix(pattern, ":"+sentinels.RunEnded) {
			l.wild[pattern] = struct{}{}
		}
	}
	l.subs[pattern][s] = struct{}{}
	return s
}

// unsubscribe ends a subscription. It returns the offset that it received, or 0,
// and the offset up to which the log has nothing for it.
func (l *Log) unsubscribe(pattern string, s *subscription) (match, through uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.subs[pattern], s)
	if len(l.subs[pattern]) == 0 {
		delete(l.subs, pattern)
		delete(l.wild, pattern)
	}
	if s.match != 0 {
		return s.match, s.match - 1
	}
	return 0, l.durable
}

// Subscriptions returns how many readers wait for events.
func (l *Log) Subscriptions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.subs {
		n += len(s)
	}
	return n
}

// A Match is the result of a wait for an event.
type Match struct {
	Event   sentinels.Event
	Offset  uint64 // of Event; 0 if none came
	Lost    int    // events that had left the log before they were compared with the pattern
	Through uint64 // of a wait without an event: no event up to this offset matches
}

// Wait returns the first durable event after a cursor that matches the pattern,
// waiting for it until ctx ends; then the error is the cause of ctx. A reader that
// continues from each offset gets every event once, in order.
//
// Events that pass during the wait are compared with the pattern, so only those
// count as lost that had left the log before. A cursor beyond the end of the log, as
// after the store was restored from an older copy, counts as its end.
func (l *Log) Wait(ctx context.Context, pattern string, after uint64) (m Match, err error) {
	for {
		l.mu.Lock()
		l.advance()
		after = min(after, l.enqueued)
		if after < l.gone {
			m.Lost += int(l.gone - after)
			after = l.gone
		}
		var s *subscription
		n, lost := l.find(pattern, after)
		m.Lost += lost
		if n == 0 {
			s = l.subscribe(pattern)
		}
		l.mu.Unlock()
		if s != nil {
			select {
			case <-s.signal:
				n, _ = l.unsubscribe(pattern, s)
			case <-ctx.Done():
				_, through := l.unsubscribe(pattern, s)
				m.Through = max(through, after)
				return m, context.Cause(ctx)
			}
		}
		var found bool
		if m.Event, found, err = l.read(n); err != nil || found {
			m.Offset = n
			return m, err
		}
		after = n - 1 // it was deleted between being found and being read
	}
}

// find returns the offset of the first durable event after a cursor that matches,
// 0 if there is none, and how many events before it were removed. l.mu is held.
func (l *Log) find(pattern string, after uint64) (n uint64, lost int) {
	for _, e := range l.kept[l.after(after):] { // after may be that of an event that is not durable yet
		if e.offset > l.durable {
			break
		}
		lost += min(e.before.count, int(e.offset-after-1))
		if sentinels.MatchEvent(pattern, e.name) {
			return e.offset, lost
		}
	}
	return 0, lost
}
