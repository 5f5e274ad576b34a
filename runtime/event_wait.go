package runtime

import (
	"context"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A subscriber waits for the next event that fits its pattern.
type subscriber struct {
	match  uint64        // position of the first one that came; guarded by the log's lock
	signal chan struct{} // capacity 1
}

// wake tells those who wait for an event of this name. Waiters are kept by
// pattern, so that what an event costs grows with the number of different
// wildcard patterns and not with that of waiters it does not concern. The
// caller holds the lock.
func (l *eventLog) wake(n uint64, name string) {
	l.wakePattern(n, name)
	for pattern := range l.wild {
		if sentinels.MatchEvent(pattern, name) {
			l.wakePattern(n, pattern)
		}
	}
}

func (l *eventLog) wakePattern(n uint64, pattern string) {
	for s := range l.subs[pattern] {
		if s.match != 0 {
			continue
		}
		s.match = n
		s.signal <- struct{}{} // has room: it is sent once
	}
}

func (l *eventLog) subscribe(pattern string) *subscriber {
	s := &subscriber{signal: make(chan struct{}, 1)}
	if l.subs[pattern] == nil {
		l.subs[pattern] = map[*subscriber]struct{}{}
		if strings.Contains(pattern, "*") {
			l.wild[pattern] = struct{}{}
		}
	}
	l.subs[pattern][s] = struct{}{}
	return s
}

// leave ends a subscription. It returns the position that it received, or 0, and
// up to where the log has nothing for it.
func (l *eventLog) leave(pattern string, s *subscriber) (match, through uint64) {
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
	return 0, l.first + uint64(len(l.kept)) - 1
}

// next is what runs wait with.
func (l *eventLog) next(ctx context.Context, pattern string, after uint64) (sentinels.Event, uint64, error) {
	found, err := l.await(ctx, pattern, after)
	return found.event, found.position, err
}

// A sighting is what a wait for an event came to.
type sighting struct {
	event    sentinels.Event
	position uint64 // 0 if none came
	lost     int    // events that had left the log before they were looked at
	through  uint64 // up to here there is nothing that fits; of a wait without an event
}

// await returns the first event behind after that fits the pattern, waiting for
// it until ctx ends. Events that pass while it waits are looked at, so only those
// count as lost that had gone before. A position that the log has not reached, as
// after a store was restored from an older copy, counts as its end.
func (l *eventLog) await(ctx context.Context, pattern string, after uint64) (f sighting, err error) {
	for {
		l.mu.Lock()
		l.takeUp()
		after = min(after, l.enqueued)
		if gone := l.first - 1; after < gone {
			f.lost += int(gone - after)
			after = gone
		}
		var s *subscriber
		n := l.find(pattern, after)
		if n == 0 {
			s = l.subscribe(pattern)
		}
		l.mu.Unlock()
		if s != nil {
			select {
			case <-s.signal:
				n, _ = l.leave(pattern, s)
			case <-ctx.Done():
				_, through := l.leave(pattern, s)
				f.through = max(through, after)
				return f, context.Cause(ctx)
			}
		}
		var found bool
		if f.event, found, err = l.read(n); err != nil || found {
			f.position = n
			return f, err
		}
		after = n - 1 // it was dropped between being found and being read
	}
}

// find returns the position of the first durable event behind after that fits,
// 0 if there is none. The caller holds the lock.
func (l *eventLog) find(pattern string, after uint64) uint64 {
	from := max(after+1, l.first) - l.first
	for i := from; i < uint64(len(l.kept)); i++ {
		if name := l.kept[i].name; name != "" && sentinels.MatchEvent(pattern, name) {
			return l.first + i
		}
	}
	return 0
}

// NextEvent returns the first durable event behind position after that fits the
// pattern, with its position, waiting for it until ctx ends. lost counts events
// that had left the log before they were read. A reader that continues from each
// position sees every event once, in order.
func (rt *Runtime) NextEvent(ctx context.Context, pattern string, after uint64) (e sentinels.Event, position uint64, lost int, err error) {
	f, err := rt.events.await(ctx, pattern, after)
	return f.event, f.position, f.lost, err
}

// EventPosition returns where the log of events stands now.
func (rt *Runtime) EventPosition() uint64 { return rt.events.position() }
