package livefeed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ErrClosed is returned by [Subscription.Next] when the feed or the
// subscription is closed and everything before that has been read.
var ErrClosed = errors.New("feed is closed")

// batch is how many entries a reader takes from the ring at a time.
const batch = 64

// A Subscription reads the entries of some topics. [Subscription.Next] is for
// one goroutine; the other methods may be called from any.
type Subscription struct {
	feed  *Feed
	woken chan struct{} // capacity 1: there may be news

	mu      sync.Mutex // taken before the feed's lock
	closed  chan struct{}
	follows []*follow
	ready   []found // read and not delivered yet
	room    []found // what ready is in, from its beginning
	read    uint64  // all entries up to this one have been looked at
	at      uint64  // all entries up to this one have been delivered
	stale   bool    // began with a cursor of another epoch, and has not been told yet
	missing loss    // not told yet
}

// A follow is one topic of a subscription.
type follow struct {
	topic   string
	alone   []string // only the topic, for entries that fit no other
	pattern string   // of events
	index   *index
	next    uint64 // ordinal in the index of the first entry that was not read
}

// Subscribe begins to read topics behind a cursor, from now on if it is empty.
// A cursor of an earlier process, or of the future, is told as a gap of unknown
// size, and reading begins now. Errors are *abi.Error: a topic or cursor that
// is not one. The subscription is to be closed.
func (f *Feed) Subscribe(cursor string, topics []string) (*Subscription, error) {
	var from Cursor
	if cursor != "" {
		var err error
		if from, err = ParseCursor(cursor); err != nil {
			return nil, err
		}
	}
	s := &Subscription{feed: f, woken: make(chan struct{}, 1), closed: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	s.at = f.seq
	if cursor != "" {
		if s.stale = from.Epoch != f.opt.Epoch || from.Seq > f.seq; !s.stale {
			s.at = from.Seq
		}
	}
	s.read = s.at
	if err := s.follow(topics, s.at); err != nil {
		return nil, err
	}
	var n uint64
	for _, w := range s.follows {
		n += w.index.lostSince(s.at, f.gone)
	}
	if n = min(n, f.gone-min(f.gone, s.at)); n > 0 {
		s.missing = loss{n: n, upTo: true, last: f.gone}
	}
	f.subs++
	return s, nil
}

// Add follows further topics from now on; those that are followed already stay
// as they are. All are added or, with an error, none.
func (s *Subscription) Add(topics ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.isClosed() {
		return ErrClosed
	}
	return s.follow(topics, s.feed.seq)
}

// follow adds topics whose entries above seq are to be read. The caller holds
// both locks.
func (s *Subscription) follow(topics []string, seq uint64) error {
	fresh := make([]*follow, 0, len(topics))
	for _, topic := range topics {
		if err := CheckTopic(topic); err != nil {
			return err
		}
		same := func(w *follow) bool { return w.topic == topic }
		if slices.ContainsFunc(s.follows, same) || slices.ContainsFunc(fresh, same) {
			continue
		}
		w := &follow{topic: topic, alone: []string{topic}}
		w.pattern, _ = strings.CutPrefix(topic, "events:")
		fresh = append(fresh, w)
	}
	if len(s.follows)+len(fresh) > MaxTopics {
		return &abi.Error{Code: abi.Limit, Field: "topics", Message: fmt.Sprintf("subscribe: more than %d topics", MaxTopics)}
	}
	for _, w := range fresh {
		x := s.feed.index(keyOf(w.topic))
		w.index, w.next = x, x.after(seq)
		if x.followers == nil {
			x.followers = map[*Subscription]int{}
		}
		x.followers[s]++
		s.follows = append(s.follows, w)
	}
	return nil
}

// Remove stops following topics; those that are not followed are no matter.
// What has been read of them ahead of [Subscription.Next] is dropped too.
func (s *Subscription) Remove(topics ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.unfollow(func(w *follow) bool { return slices.Contains(topics, w.topic) })
	s.ready = slices.DeleteFunc(s.ready, func(e found) bool {
		return !slices.ContainsFunc(e.topics, func(topic string) bool { return !slices.Contains(topics, topic) })
	})
}

func (s *Subscription) unfollow(gone func(*follow) bool) {
	s.follows = slices.DeleteFunc(s.follows, func(w *follow) bool {
		if !gone(w) {
			return false
		}
		x := w.index
		if x.followers[s]--; x.followers[s] == 0 {
			delete(x.followers, s)
		}
		s.feed.forget(x)
		return true
	})
}

// Topics returns what is followed, in the order in which it was added.
func (s *Subscription) Topics() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	topics := make([]string, len(s.follows))
	for i, w := range s.follows {
		topics[i] = w.topic
	}
	return topics
}

// Cursor returns the place up to which everything has been delivered: the one
// to come back with.
func (s *Subscription) Cursor() Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feed.at(s.at)
}

// Close ends the subscription. It may be called twice.
func (s *Subscription) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return
	}
	close(s.closed)
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.subs--
	s.unfollow(func(*follow) bool { return true })
	s.ready = nil
}

func (s *Subscription) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// rouse makes Next look for news.
func (s *Subscription) rouse() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// Next returns the next entry, once there is one. Errors: ctx's cause, or
// [ErrClosed].
func (s *Subscription) Next(ctx context.Context) (Entry, error) {
	for {
		ended := s.feed.over() // asked before looking: what was put before the end is found
		if e, ok := s.take(); ok {
			return e, nil
		}
		if ended {
			return Entry{}, ErrClosed
		}
		select {
		case <-s.woken:
		case <-s.feed.done:
		case <-s.closed:
			return Entry{}, ErrClosed
		case <-ctx.Done():
			return Entry{}, context.Cause(ctx)
		}
	}
}

func (f *Feed) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// matches reports whether the follow is about an entry of its index.
func (w *follow) matches(e *entry) bool {
	return w.index.key.class != "events" || sentinels.MatchEvent(w.pattern, e.event)
}
