package livefeed

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// An Entry is what a [Subscription] delivers: something that happened, or a gap.
type Entry struct {
	Cursor Cursor
	Topic  string    // as it was subscribed to
	Also   []string  // further topics of the subscription that it matches
	Kind   string    // "step.end", an event's name, and the like
	Time   time.Time // when it was published
	Gap    *Gap      // if set, there is no body: entries are missing here

	payload *payload
}

// Body returns what happened, as JSON. It is shared between all readers and must not be
// changed.
func (e Entry) Body() json.RawMessage {
	if e.payload == nil {
		return nil
	}
	return e.payload.json()
}

// Progress returns the progress that Body encodes, for readers in this process. It is
// nil for any other entry, and once the entry has been encoded. It must not be changed.
func (e Entry) Progress() *runtime.Progress {
	if e.payload == nil {
		return nil
	}
	return e.payload.progress.Load()
}

// A Gap counts entries that a reader has missed.
type Gap struct {
	Lost int64 `json:"lost"`           // entries of the reader's topics; -1 if unknown
	UpTo bool  `json:"upTo,omitempty"` // Lost is an upper bound
	Text int64 `json:"text,omitempty"` // how many of Lost were pieces of a model's text
}

// entry is an element of the ring. Its fields do not change once it is published,
// except the payload: that of a model's text is dropped early under pressure.
type entry struct {
	seq     uint64
	time    time.Time
	kind    string
	event   string   // the name of an event, for patterns
	rooms   []string // that the event belongs to
	ofUser  bool     // an event of a user whose name has the form of events of runs
	text    bool     // a piece of a model's text
	indexes [3]*index
	payload atomic.Pointer[payload]
}

// A payload is encoded at most once, by its first reader. Without readers nothing
// is encoded.
type payload struct {
	once     sync.Once
	progress atomic.Pointer[runtime.Progress] // nil if body is given
	max      int                              // longest body, bytes
	redact   func(json.RawMessage) json.RawMessage
	output   int // length of an output that was omitted, bytes
	body     json.RawMessage
	size     int // estimated memory, bytes
	text     bool
}

// entryCost is the memory of an entry without its payload, bytes: the struct and
// its slots in the queues.
const entryCost = 256

// progressBody is progress as the feed publishes it. An output that is too long
// for a stream is replaced by its length; the run's trace has all of it.
type progressBody struct {
	*runtime.Progress
	OutputBytes int `json:"outputBytes,omitempty"`
}

func (p *payload) json() json.RawMessage {
	p.once.Do(func() {
		if progress := p.progress.Load(); progress != nil {
			p.body = encode(progressBody{Progress: progress, OutputBytes: p.output}, p.max)
			if p.redact != nil {
				p.body = p.redact(p.body)
			}
			p.progress.Store(nil)
		}
	})
	return p.body
}

// progressPayload returns a payload that keeps p. A long output is dropped here
// and not when it is encoded, because it would stay in memory until then.
func progressPayload(p runtime.Progress, opt Options) *payload {
	v := &payload{max: opt.MaxBody, redact: opt.Redact, text: p.Event.Partial()}
	v.progress.Store(&p)
	if n := len(p.Output); n > opt.MaxOutput {
		p.Output, v.output = nil, n
	}
	v.size = progressSize(&p)
	return v
}

// encode marshals a body. It never fails: a body that cannot be encoded, or is too
// long, becomes an object with a "problem", so that readers still learn of it.
func encode(v any, maxBody int) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"problem": fmt.Sprintf("encode %T: %v", v, err)})
	}
	if len(b) > maxBody {
		b, _ = json.Marshal(map[string]any{"problem": "too long for the feed", "bytes": len(b)})
	}
	return b
}

// progressSize estimates the memory of a Progress, bytes.
func progressSize(p *runtime.Progress) int {
	const fixed = 1024 // the struct, its short strings, and the same once more as JSON
	size := fixed + len(p.Output) + len(p.Params) + len(p.Message)
	if p.Error != nil {
		size += len(p.Error.Message) + len(p.Error.Hint)
	}
	if p.Decision != nil {
		size += fixed + len(p.Decision.Prompt)
	}
	return size
}
