package livefeed

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// Options configure a [Feed].
type Options struct {
	// Entries is how many entries are kept for readers that come back or lag.
	// Default: 16,384.
	Entries int
	// Bytes is how much memory entries may take in all. Default: 16 MiB.
	Bytes int
	// TextEvery is how long pieces of a model's text are gathered before they
	// become an entry. Default: 100 ms.
	TextEvery time.Duration
	// Epoch names this process in cursors: lower-case letters and digits, up to
	// 13, never the same twice on one machine. Default: the time in base 36.
	Epoch string
	// Now stamps entries. Default: time.Now.
	Now func() time.Time
}

// A Feed is the ring and its readers.
//
// # Concurrency
//
// All methods are safe for concurrent use. Publishing takes a lock that is held
// for a few map look-ups, by readers too; it never waits for a reader to act,
// and its cost does not depend on how many there are: the feed's own goroutine
// wakes them. Entries that one goroutine publishes keep their order.
type Feed struct {
	opt Options

	mu      sync.RWMutex
	closed  bool
	seq     uint64 // of the newest entry
	gone    uint64 // of the newest entry that left the ring
	ring    queue[*entry]
	texts   queue[*entry] // those of the ring that are text and still have it
	live    int           // entries in the ring that have a payload
	bytes   int           // what live entries take
	text    int           // what texts take, bytes
	indexes map[key]*index
	streams map[streamKey]*stream
	dirty   []*index // have news, and followers who do not know yet

	subs int // open subscriptions
	gaps atomic.Uint64
	lost atomic.Uint64 // entries that readers were told they had missed

	signal chan struct{} // capacity 1: there is something in dirty, or text to gather
	done   chan struct{} // closed by Close
	ended  chan struct{} // closed when the goroutine has returned
}

// New makes a feed and starts its goroutine; [Feed.Close] ends it.
func New(o Options) *Feed {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Entries <= 0 {
		o.Entries = 16384
	}
	if o.Bytes <= 0 {
		o.Bytes = 16 << 20
	}
	if o.TextEvery <= 0 {
		o.TextEvery = 100 * time.Millisecond
	}
	if o.Epoch == "" {
		o.Epoch = strconv.FormatInt(o.Now().UnixNano(), 36)
	}
	f := &Feed{
		opt: o, indexes: map[key]*index{}, streams: map[streamKey]*stream{},
		signal: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
	}
	go f.wake()
	return f
}

// Close ends the feed: publishing does nothing any more, and subscriptions that
// wait or have read everything get [ErrClosed]. It may be called twice.
func (f *Feed) Close() {
	f.mu.Lock()
	if !f.closed {
		f.flushAll()
		f.closed = true
		close(f.done)
	}
	f.mu.Unlock()
	<-f.ended
}

// Publish tells the followers of a topic of something. The body is encoded
// before Publish returns, so the caller may change it afterwards; one that
// cannot be encoded, or is longer than 256 KiB, is replaced by an object whose
// "problem" says so. It never waits for a reader.
func (f *Feed) Publish(topic, kind string, body any) {
	raw, ok := body.(json.RawMessage)
	if ok && len(raw) <= maxBody {
		// Kept: copied, since it is the caller's. That it is JSON is checked once
		// here rather than by every reader's parser.
		if ok = json.Valid(raw); ok {
			raw = append(json.RawMessage(nil), raw...)
		}
	}
	if !ok || len(raw) > maxBody {
		raw = encode(body)
	}
	e := &entry{kind: kind}
	e.event, _ = strings.CutPrefix(topic, "events:")
	p := &payload{body: raw, size: entryCost + len(raw)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(e, p, keyOf(topic))
}

// Progress tells the followers of a run, of its tree and of all runs of
// something that the engine told. It is meant to be a [runtime.Observer]'s
// function: it keeps p, whose slices nobody may change.
func (f *Feed) Progress(p runtime.Progress) {
	if p.Run == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.Event == runtime.OnText {
		f.gather(p)
		return
	}
	f.flush(p) // what was said before this happened comes first
	f.putProgress(p)
}

// putProgress puts p into the ring. The caller holds f.mu.
func (f *Feed) putProgress(p runtime.Progress) {
	root := p.Root
	if root == "" {
		root = p.Run
	}
	v := progressPayload(p)
	v.size += entryCost
	e := &entry{kind: string(p.Event), text: v.text}
	switch p.Event {
	case runtime.OnRunStart, runtime.OnStatus, runtime.OnRunEnd:
		f.put(e, v, key{"run", string(p.Run)}, key{"tree", string(root)}, key{class: TopicRuns})
	default:
		f.put(e, v, key{"run", string(p.Run)}, key{"tree", string(root)})
	}
}

// put gives an entry the next number and makes room for it. The caller holds
// f.mu.
func (f *Feed) put(e *entry, p *payload, keys ...key) {
	if f.closed {
		return
	}
	e.time = f.opt.Now()
	e.payload.Store(p)
	for i, k := range keys {
		x := f.index(k)
		x.items.push(e)
		e.indexes[i] = x
		if len(x.followers) > 0 && !x.dirty {
			x.dirty = true
			f.dirty = append(f.dirty, x)
		}
	}
	f.seq++
	e.seq = f.seq
	f.ring.push(e)
	f.live++
	f.bytes += p.size
	if p.text {
		f.texts.push(e)
		f.text += p.size
	}
	f.makeRoom()
	if len(f.dirty) > 0 {
		f.nudge()
	}
}

// index returns the index of a key, a new one if there is none. The caller
// holds f.mu.
func (f *Feed) index(k key) *index {
	x := f.indexes[k]
	if x == nil {
		x = &index{key: k, born: f.seq}
		f.indexes[k] = x
	}
	return x
}

// Cursor returns the place of the newest entry.
func (f *Feed) Cursor() Cursor {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.at(f.seq)
}

func (f *Feed) at(seq uint64) Cursor { return Cursor{Epoch: f.opt.Epoch, Seq: seq} }

// Stats is how a feed fares.
type Stats struct {
	Published   uint64 // entries since the start
	Entries     int    // in the ring now, without texts that were let go early
	Bytes       int    // what they take, an estimate
	Subscribers int
	Gaps        uint64 // how often a reader was told of a gap
	Lost        uint64 // how many entries those gaps were in all, as far as known
}

// Stats returns how the feed fares.
func (f *Feed) Stats() Stats {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return Stats{Published: f.seq, Entries: f.live, Bytes: f.bytes, Subscribers: f.subs, Gaps: f.gaps.Load(), Lost: f.lost.Load()}
}
