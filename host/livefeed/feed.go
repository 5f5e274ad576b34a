package livefeed

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options configure a [Feed].
type Options struct {
	// Entries is how many entries are kept for readers that resume or lag.
	// Default: 16,384.
	Entries int
	// Bytes is how much memory the entries may use together. Default: 16 MiB.
	Bytes int
	// MaxOutput is the longest output of a step that is published, in bytes; a longer
	// one is replaced by its length. Default: 64 KiB.
	MaxOutput int
	// MaxBody is the longest body of an entry, in bytes. Default: 256 KiB.
	MaxBody int
	// TextEvery is how long pieces of a model's text are gathered before they
	// become an entry. Default: 100 ms.
	TextEvery time.Duration
	// Epoch names this process in cursors: lower-case letters and digits, up to
	// 13, never the same twice on one machine. Default: the time in base 36.
	Epoch string
	// Redact takes secrets out of the bodies of entries. Default: they stay as they are.
	Redact func(json.RawMessage) json.RawMessage
	// Now is the clock of entries. Default: time.Now.
	Now func() time.Time
}

// A Feed is a ring buffer of entries and its subscriptions.
//
// # Concurrency
//
// All methods are safe for concurrent use. Publishing and reading share a lock
// that each holds for a few map look-ups. Publishing never waits for a reader to
// act, and its cost does not depend on the number of readers, because the feed's
// own goroutine wakes them. Entries that one goroutine publishes keep their order.
type Feed struct {
	opt Options

	mu      sync.RWMutex
	closed  bool
	seq     uint64 // of the newest entry
	gone    uint64 // of the newest entry that left the ring
	ring    queue[*entry]
	texts   queue[*entry] // entries of the ring that are text and have their payload
	live    int           // entries in the ring that have a payload
	bytes   int           // memory of live entries
	text    int           // memory of texts, bytes
	indexes map[key]*index
	streams map[streamKey]*stream
	dirty   []*index // have new entries, and followers to wake

	runEvents map[string]bool      // patterns of events of runs that were subscribed to
	expect    func(pattern string) // informs the engine of them; nil before PublishEvents

	subs int // open subscriptions
	gaps atomic.Uint64
	lost atomic.Uint64 // entries in the gaps that were delivered

	signal chan struct{} // capacity 1: dirty is not empty, or text is being gathered
	done   chan struct{} // closed by Close
	ended  chan struct{} // closed when the goroutine has returned
}

// New returns a feed and starts its goroutine; [Feed.Close] ends it.
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
	if o.MaxOutput <= 0 {
		o.MaxOutput = 64 << 10
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 256 << 10
	}
	if o.TextEvery <= 0 {
		o.TextEvery = 100 * time.Millisecond
	}
	if o.Epoch == "" {
		o.Epoch = strconv.FormatInt(o.Now().UnixNano(), 36)
	}
	f := &Feed{
		runEvents: map[string]bool{},
		opt:       o, indexes: map[key]*index{}, streams: map[streamKey]*stream{},
		signal: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
	}
	go f.wake()
	return f
}

// Close ends the feed. Publishing has no effect afterwards, and subscriptions
// get [ErrClosed] once they have read everything. It may be called twice.
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

// Publish publishes an entry on a topic. The body is encoded before Publish
// returns, so the caller may change it afterwards. A body that cannot be encoded,
// or is longer than Options.MaxBody, is replaced by an object with the member "problem".
// Publish never waits for a reader.
func (f *Feed) Publish(topic, kind string, body any) {
	raw, ok := body.(json.RawMessage)
	if ok && len(raw) <= f.opt.MaxBody {
		// Copied, because it belongs to the caller. It is checked once here, and not
		// by the parser of every reader.
		if ok = json.Valid(raw); ok {
			raw = append(json.RawMessage(nil), raw...)
		}
	}
	if !ok || len(raw) > f.opt.MaxBody {
		raw = encode(body, f.opt.MaxBody)
	}
	if f.opt.Redact != nil {
		raw = f.opt.Redact(raw)
	}
	e := &entry{kind: kind}
	e.event, _ = strings.CutPrefix(topic, "events:")
	if event, ok := body.(sentinels.Event); ok {
		e.rooms = roomsOf(event)
		e.ofUser = sentinels.IsRunEvent(event.Name) && !sentinels.FromEngine(event.Source)
	}
	p := &payload{body: raw, size: entryCost + len(raw)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(e, p, keyOf(topic))
}

// Progress publishes an engine's report on the topics of the run, of its tree
// and of all runs. It is meant for [runtime.Observer]: it keeps p, whose slices
// must not be changed afterwards.
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
	f.flush(p) // the text before p comes first
	f.putProgress(p)
}

// putProgress puts p into the ring. The caller holds f.mu.
func (f *Feed) putProgress(p runtime.Progress) {
	root := p.Root
	if root == "" {
		root = p.Run
	}
	v := progressPayload(p, f.opt)
	v.size += entryCost
	e := &entry{kind: string(p.Event), text: v.text}
	switch p.Event {
	case runtime.OnRunStart, runtime.OnStatus, runtime.OnRunEnd:
		f.put(e, v, key{"run", string(p.Run)}, key{"tree", string(root)}, key{class: TopicRuns})
	default:
		f.put(e, v, key{"run", string(p.Run)}, key{"tree", string(root)})
	}
}

// put appends an entry with the next sequence number and evicts others to stay
// within the bounds. The caller holds f.mu.
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
	f.evict()
	if len(f.dirty) > 0 {
		f.signalWake()
	}
}

// index returns the index of a key and creates it if there is none. The caller
// holds f.mu.
func (f *Feed) index(k key) *index {
	x := f.indexes[k]
	if x == nil {
		x = &index{key: k, born: f.seq}
		f.indexes[k] = x
	}
	return x
}

// Cursor returns the position of the newest entry.
func (f *Feed) Cursor() Cursor {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.at(f.seq)
}

func (f *Feed) at(seq uint64) Cursor { return Cursor{Epoch: f.opt.Epoch, Seq: seq} }

// Stats are figures about a feed.
type Stats struct {
	Published   uint64 // entries since the start
	Entries     int    // in the ring now, without texts that were dropped early
	Bytes       int    // their estimated memory
	Subscribers int
	Gaps        uint64 // gaps that were delivered
	Lost        uint64 // entries in those gaps, as far as known
}

// Stats returns the current figures.
func (f *Feed) Stats() Stats {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return Stats{Published: f.seq, Entries: f.live, Bytes: f.bytes, Subscribers: f.subs, Gaps: f.gaps.Load(), Lost: f.lost.Load()}
}
