package cassette

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Provider is the provider of replies that come from a cassette.
const Provider = "cassette"

// PlayOptions configure a Player. The zero value works.
type PlayOptions struct {
	Workspace string           // the run's absolute workspace. Default none
	Redact    *redact.Redactor // as when it was recorded. Default none
	Strict    bool             // a request that changed is an error. Default false
}

// A Player answers turns from a cassette. It needs no provider, and what it
// answers costs nothing; replies keep the usage that was recorded, so that
// budgets act as they did.
//
// # Concurrency
//
// Its methods are safe for concurrent use. Each recorded turn answers once.
type Player struct {
	name    string
	options PlayOptions
	paths   paths
	torn    bool

	mu          sync.Mutex
	entries     []Entry
	used        []bool
	asked       int
	divergences []Divergence
}

// Open reads a cassette.
func Open(file string, o PlayOptions) (*Player, error) {
	f, _, err := regularfile.Open(file)
	if err != nil {
		return nil, &abi.Error{Code: abi.NotFound, Permanent: true, Message: "open cassette: " + err.Error()}
	}
	defer f.Close()
	return Read(file, f, o)
}

// Read reads a cassette that is not a file, such as an embedded one; name is
// for messages.
func Read(name string, r io.Reader, o PlayOptions) (*Player, error) {
	t, err := read(r)
	if err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("read cassette %q: %s", name, err)}
	}
	// The key is computed again: a cassette written or edited by hand need not
	// have the right ones.
	for i := range t.entries {
		t.entries[i].Key = key(t.entries[i].Request)
	}
	return &Player{
		name: name, options: o, paths: newPaths(o.Workspace), torn: t.torn,
		entries: t.entries, used: make([]bool, len(t.entries)),
	}, nil
}

// Torn reports whether the file ended in the middle of a line, which is
// ignored.
func (p *Player) Torn() bool { return p.torn }

// Len is the number of recorded turns, without those that were cancelled.
func (p *Player) Len() int {
	n := 0
	for _, entry := range p.entries {
		if !entry.Cancelled {
			n++
		}
	}
	return n
}

// Quote says what the turn that would answer now had cost. It uses none up.
func (p *Player) Quote(_ context.Context, turn sentinels.Turn) (llm.Quote, error) {
	request, err := p.request(turn)
	if err != nil {
		return llm.Quote{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, _ := p.find(request)
	if at < 0 {
		return llm.Quote{}, p.exhausted(request)
	}
	q := llm.Quote{Provider: Provider, Model: p.entries[at].Request.Model, Priced: true}
	if reply := p.entries[at].Reply; reply != nil {
		q.Model, q.Worst = reply.Model, reply.Usage
	}
	return q, nil
}

// Turn answers from the cassette, at once. One that was cancelled has no answer: the run cancels it again.
func (p *Player) Turn(ctx context.Context, turn sentinels.Turn, delta func(text string)) (sentinels.Reply, error) {
	if ctx.Err() != nil {
		return sentinels.Reply{}, &abi.Error{Code: abi.Cancelled, Message: "cassette: cancelled"}
	}
	request, err := p.request(turn)
	if err != nil {
		return sentinels.Reply{}, err
	}
	entry, err := p.take(request)
	if err != nil {
		return sentinels.Reply{}, err
	}
	if err := mapTexts(&entry, p.paths.show); err != nil {
		return sentinels.Reply{}, &abi.Error{Code: abi.Internal, Message: "cassette: " + err.Error()}
	}
	if entry.Error != nil {
		return sentinels.Reply{}, entry.Error
	}
	if entry.Cancelled {
		return sentinels.Reply{}, p.awaitCancel(ctx, entry)
	}
	reply := *entry.Reply
	reply.Provider = Provider
	if reply.ToolCalls == nil {
		reply.ToolCalls = []sentinels.ToolCall{}
	}
	if delta != nil && reply.Text != "" {
		delta(reply.Text)
	}
	return reply, nil
}

// cancelGrace is how much longer than in the recorded run a turn waits to be cancelled.
const cancelGrace = 10 * time.Second

// awaitCancel returns when the run cancels the turn, as it did when it was recorded. A run that does not goes another
// way than the recorded one: no reply is known.
func (p *Player) awaitCancel(ctx context.Context, entry Entry) error {
	recorded := time.Duration(entry.Ms) * time.Millisecond
	select {
	case <-ctx.Done():
		return &abi.Error{Code: abi.Cancelled, Message: "cassette: cancelled"}
	case <-time.After(recorded + cancelGrace):
		return &abi.Error{
			Code: abi.NotFound, Permanent: true,
			Message: fmt.Sprintf("cassette %q: turn %d was cancelled after %s when it was recorded, and is not now", p.name, entry.N, recorded),
			Hint:    "the run goes another way than the recorded one; record it again with --record FILE",
		}
	}
}

// request is the turn as it would have been recorded.
func (p *Player) request(turn sentinels.Turn) (sentinels.Turn, error) {
	if err := hide(&turn, p.options.Redact, p.paths); err != nil {
		return turn, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "cassette: " + err.Error()}
	}
	return turn, nil
}

// take uses up the turn that answers a request.
func (p *Player) take(request sentinels.Turn) (Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	at, exact := p.find(request)
	if at < 0 {
		p.divergences = append(p.divergences, Divergence{Call: p.asked, Changes: []Change{{Path: "request", Now: summary(request)}}})
		return Entry{}, p.exhausted(request)
	}
	entry := p.entries[at]
	if !exact {
		d := Divergence{Call: p.asked, Entry: entry.N, Changes: diff(entry.Request, request)}
		p.divergences = append(p.divergences, d)
		if p.options.Strict {
			return Entry{}, &abi.Error{
				Code: abi.Conflict, Permanent: true,
				Message: fmt.Sprintf("cassette %q: %s", p.name, d),
				Hint:    "record the run again with --record FILE, or replay without strict",
			}
		}
	}
	p.used[at] = true
	return entry, nil
}

// find returns the unused turn for a request and whether it is the same one,
// or -1.
func (p *Player) find(request sentinels.Turn) (at int, exact bool) {
	wanted, cancelled := key(request), -1
	for i, entry := range p.entries {
		switch {
		case p.used[i] || entry.Key != wanted:
		case !entry.Cancelled:
			return i, true
		case cancelled < 0: // another attempt of the same request may have a reply
			cancelled = i
		}
	}
	if cancelled >= 0 {
		return cancelled, true
	}
	// Nothing is kept for a request that may still come: the exact match of a
	// later one can be taken by a changed one now, and is then reported twice.
	best := -1
	var score likeness
	for i, entry := range p.entries {
		if p.used[i] || entry.Cancelled {
			continue
		}
		if s := compare(entry.Request, request); best < 0 || s.more(score) {
			best, score = i, s
		}
	}
	return best, false
}

// likeness is how much two requests have in common; what comes first weighs
// more than all that follows.
type likeness [5]bool

// compare weighs as the package's documentation says.
func compare(a, b sentinels.Turn) likeness {
	tools := slices.EqualFunc(a.Tools, b.Tools, func(x, y sentinels.ToolSpec) bool { return x.Name == y.Name })
	first := firstMessage(a) == firstMessage(b)
	return likeness{
		tools && first && a.Model == b.Model,
		len(a.Messages) == len(b.Messages),
		tools && steady(a.System) == steady(b.System),
		tools,
		first,
	}
}

func (l likeness) more(than likeness) bool {
	for i := range l {
		if l[i] != than[i] {
			return l[i]
		}
	}
	return false
}

func firstMessage(t sentinels.Turn) string {
	if len(t.Messages) == 0 {
		return ""
	}
	return steady(milliseconds.ReplaceAllString(t.Messages[0].Content, "${1}0"))
}

// exhausted is permanent: another attempt would find the cassette empty too.
func (p *Player) exhausted(request sentinels.Turn) error {
	return &abi.Error{
		Code: abi.NotFound, Permanent: true,
		Message: fmt.Sprintf("cassette %q: all %d turns are used, and one more is asked for: %s", p.name, p.Len(), summary(request)),
		Hint:    "the run goes another way than the recorded one; record it again with --record FILE",
	}
}

var _ Models = (*Player)(nil)
