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

// batch is how many entries a reader reads from the ring at a time.
const batch = 64

// A Subscription reads the entries of some topics. [Subscription.Next] is for
// one goroutine; the other methods may be called from any.
type Subscription struct {
	feed  *Feed
	woken chan struct{} // capacity 1: there may be new entries

	mu      sync.Mutex // taken before the feed's lock
	closed  chan struct{}
	follows []*follow
	ready   []found // read and not delivered yet
	buffer  []found // the array of ready, from its beginning
	read    uint64  // all entries up to this one have been looked at
	at      uint64  // all entries up to this one have been delivered
	stale   bool    // began with a cursor of another epoch; that gap is not delivered yet
	missing loss    // not delivered yet
}

// A follow is one topic of a subscription.
type follow struct {
	topic   string
	alone   []string // only the topic, for entries that fit no other
	pattern string   // of events
	index   *index
	next    uint64 // ordinal in the index of the first entry that was not read
}

// Subscribe returns a subscription to the entries of topics after a cursor, or
// from now on if it is empty. With a cursor of an earlier process, or of the
// future, it delivers a gap of unknown size and reads from now on. Errors are
// *abi.Error: an invalid topic or cursor. The subscription must be closed.
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

// Add subscribes to further topics from now on. Topics that are subscribed to
// already are unaffected. With an error, none is added.
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

// follow adds topics, to be read from the first entry after seq. The caller
// holds both locks.
func (s *Subscription) follow(topics []string, seq uint64) error {
	fresh := make([]*follow, 0, len(topics))
	known := make(map[string]bool, len(s.follows)+len(topics))
	for _, w := range s.follows {
		known[w.topic] = true
	}
	for _, topic := range topics {
		if err := CheckTopic(topic); err != nil {
			return err
		}
		if pattern, ok := strings.CutPrefix(topic, "events:"); ok && sentinels.IsRunEvent(pattern) {
			s.feed.expectRunEvents(pattern)
		}
		if known[topic] {
			continue
		}
		known[topic] = true
		w := &follow{topic: topic, alone: []string{topic}}
		w.pattern, _ = strings.CutPrefix(topic, "events:")
		fresh = append(fresh, w)
	}
	if len(s.follows)+len(fresh) > MaxTopics {
		return tooManyTopics()
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

func tooManyTopics() error {
	return &abi.Error{Code: abi.Limit, Field: "topics", Message: fmt.Sprintf("subscribe: more than %d topics", MaxTopics)}
}

// Remove unsubscribes from topics and ignores those that are not subscribed to.
// Entries that were read ahead of [Subscription.Next] are dropped too.
func (s *Subscription) Remove(topics ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	gone := make(map[string]bool, len(topics))
	for _, topic := range topics {
		gone[topic] = true
	}
	s.unfollow(func(w *follow) bool { return gone[w.topic] })
	s.ready = slices.DeleteFunc(s.ready, func(e found) bool {
		return !slices.ContainsFunc(e.topics, func(topic string) bool { return !gone[topic] })
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

// Topics returns the topics in the order in which they were added.
func (s *Subscription) Topics() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	topics := make([]string, len(s.follows))
	for i, w := range s.follows {
		topics[i] = w.topic
	}
	return topics
}

// Cursor returns the position up to which everything has been delivered, to
// resume from.
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

// rouse makes Next look for new entries.
func (s *Subscription) rouse() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// Next waits for the next entry and returns it. Errors: ctx's cause, or
// [ErrClosed].
func (s *Subscription) Next(ctx context.Context) (Entry, error) {
	for {
		ended := s.feed.isClosed() // checked before take, which then finds what was published before Close
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

func (f *Feed) isClosed() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// matches reports whether an entry of the index matches the follow's topic.
func (w *follow) matches(e *entry) bool {
	if isRoom(w.topic) {
		return slices.Contains(e.rooms, w.topic)
	}
	return w.index.key.class != "events" || w.pattern == "**" && e.ofUser || sentinels.MatchEvent(w.pattern, e.event)
}
