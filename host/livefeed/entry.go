package livefeed

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// An Entry is one thing that a [Subscription] delivers. Its Body is shared
// between all readers: do not change it.
type Entry struct {
	Cursor Cursor
	Topic  string          // as it was subscribed to
	Also   []string        // further topics of the subscription that it fits
	Kind   string          // "step.end", an event's name, and the like
	Time   time.Time       // when it was published
	Body   json.RawMessage // what happened
	Gap    *Gap            // if set there is no body: something is missing here
}

// A Gap says what a reader has not seen.
type Gap struct {
	Lost int64 `json:"lost"`           // entries of the reader's topics; -1 if nobody knows
	UpTo bool  `json:"upTo,omitempty"` // Lost is a bound: at most so many
	Text int64 `json:"text,omitempty"` // how many of Lost were only a model's text in pieces
}

// entry is what the ring holds. Its fields do not change once it is in, but for
// the payload: a model's text is taken out early when room is short.
type entry struct {
	seq     uint64
	time    time.Time
	kind    string
	event   string // the name of an event, for patterns
	text    bool   // a piece of a model's text
	indexes [3]*index
	payload atomic.Pointer[payload]
}

// A payload is encoded at most once, by the first who reads it: while nobody
// watches, nothing is encoded.
type payload struct {
	once     sync.Once
	progress *runtime.Progress // nil if body is given
	output   int               // length of an output that was left out, bytes
	body     json.RawMessage
	size     int // estimate of what it takes in memory, bytes
	text     bool
}

// entryCost is what an entry takes beside its payload, bytes: itself, its places
// in the queues.
const entryCost = 256

// told is progress as the feed passes it on: an output that is too long for a
// stream is left out and its length told. The whole is in the run's trace.
type told struct {
	*runtime.Progress
	OutputBytes int `json:"outputBytes,omitempty"`
}

// maxOutput bounds a step's output in the feed, bytes; maxBody any other body.
const (
	maxOutput = 64 << 10
	maxBody   = 256 << 10
)

func (p *payload) json() json.RawMessage {
	p.once.Do(func() {
		if p.progress != nil {
			p.body, p.progress = encode(told{Progress: p.progress, OutputBytes: p.output}), nil
		}
	})
	return p.body
}

// progressPayload takes p over. A long output is let go of now rather than when
// it is encoded, since until then it would be kept in memory.
func progressPayload(p runtime.Progress) *payload {
	v := &payload{progress: &p, text: p.Event == runtime.OnText}
	if n := len(p.Output); n > maxOutput {
		p.Output, v.output = nil, n
	}
	v.size = progressSize(&p)
	return v
}

// encode never fails: a reader who gets a body that says what is wrong with it
// knows more than one who gets nothing.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"problem": fmt.Sprintf("encode %T: %v", v, err)})
	}
	if len(b) > maxBody {
		b, _ = json.Marshal(map[string]any{"problem": "too long for the feed", "bytes": len(b)})
	}
	return b
}

// progressSize estimates what a Progress takes, bytes.
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
