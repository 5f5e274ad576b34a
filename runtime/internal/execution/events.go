package execution

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// chain is the runs that an event has passed through.
type chain = eventlog.Chain

// EmitsFor implements [step.State].
func (r *liveRun) EmitsFor() string { return emitsFor(r.As(), r.bounded()) }

// EmitsFor returns the agent or model behind the runs of a stored revision that its triggers start, ""
// for a person.
func EmitsFor(s revision.Stored) string { return emitsFor(s.Agent(), s.Within != nil) }

// emitsFor returns the agent or model behind the events of a run, see [sentinels.Event].
func emitsFor(as string, bounded bool) string {
	switch {
	case revision.AgentOf(as) != "":
		return as
	case bounded:
		return "model"
	}
	return ""
}

// originOf says what led to a run and its iteration, and which agent has changed the definition of the
// iteration, see [run.PendingDecision]. others are further parts of the text.
func originOf(begin *journal.RunStartBody, event *sentinels.Event, maker string, others []string) string {
	var parts []string
	forked := "" // changed the steps that the fork began with
	if begin.Fork != nil {
		forked = begin.Fork.Maker
	}
	if forked != "" {
		parts = append(parts, "with steps of "+forked)
	}
	if maker != "" && maker != begin.As && maker != forked {
		parts = append(parts, "with steps of "+maker)
	}
	if revision.AgentOf(begin.As) != "" {
		parts = append(parts, "started for "+begin.As)
	}
	if begin.GivenBy != "" && begin.GivenBy != begin.As {
		parts = append(parts, "started by "+begin.GivenBy)
	}
	if event != nil && (event.By != "" || event.Source != "") {
		text := fmt.Sprintf("event %q from %s", event.Name, event.Source)
		if event.By != "" && event.By != event.Source {
			text += ", emitted for " + event.By
		}
		parts = append(parts, text)
	}
	c := eventlog.ChainOf(event).Longer(chain{Hops: begin.Hops, Path: begin.Path})
	if len(c.Path) > 0 {
		parts = append(parts, "after runs of "+strings.Join(c.Path, ", "))
	}
	return strings.Join(append(parts, others...), "; ")
}

// stepsOfAgents says which other runs of a tree executed steps that an agent or a model made and no person accepted: what they
// gave is part of what a person decides about. The agent that the run executes for is known.
func (ex *Executor) stepsOfAgents(root, id sentinels.RunID, known string) (parts []string) {
	const most = 1000 // runs, the newest
	tree, err := ex.opt.Index.List(run.Filter{Root: root, Limit: most})
	if err != nil {
		return nil // the run ends for the same reason
	}
	type version struct {
		of       sentinels.ID
		revision int
	}
	seen := map[version]bool{}
	for _, other := range tree {
		v := version{other.Sentinel, other.Revision}
		if other.ID == id || other.Revision == 0 || seen[v] {
			continue
		}
		seen[v] = true
		stored, err := ex.opt.Definitions.Revision(other.Sentinel, other.Revision)
		if by := EmitsFor(stored); err == nil && by != "" && by != known {
			parts = append(parts, fmt.Sprintf("after steps of %s in revision %d of %s", by, v.revision, v.of))
		}
	}
	slices.Sort(parts)
	return parts
}

// originBy returns the agent or model that gave the run, or one of those above it, what it works with, see
// [run.PendingDecision].
func (r *liveRun) originBy() string {
	for at := r; at != nil; at = at.parent {
		at.mu.Lock()
		e := at.folded.Event
		at.mu.Unlock()
		if by := cmp.Or(givesEvent(e), at.begin.GivenBy); by != "" {
			return by
		}
		for _, name := range slices.Sorted(maps.Keys(at.begin.InputsBy)) {
			return at.begin.InputsBy[name]
		}
	}
	return ""
}

// EventsBy implements [step.State]. An agent whose event started a run of a person is behind the events of that
// run too; in a later iteration that answers another event, the one behind that.
func (r *liveRun) EventsBy() string {
	if by := r.EmitsFor(); by != "" {
		return by
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folded.EventSeq == 0 {
		return r.begin.CausedBy
	}
	return eventlog.Cause(r.folded.Event)
}

// causedBy returns the agent or model behind the event that starts a run, or that starts it, or behind the run whose
// step does.
func (ex *Executor) causedBy(opt startOptions) string {
	from := opt.parent
	if from == nil {
		from = ex.live(opt.Starter)
	}
	if by := cmp.Or(eventlog.Cause(opt.Event), opt.GivenBy); by != "" || from == nil {
		return by
	}
	return from.EventsBy()
}

// givesEvent returns the agent or model for which an event was emitted, or one of those that a debounce joined with it.
func givesEvent(e *sentinels.Event) string {
	if e == nil {
		return ""
	}
	by := e.By
	for _, other := range e.Batch {
		by = cmp.Or(by, other.By)
	}
	return by
}

// Chain is Runtime.Chain of package runtime.
func (ex *Executor) Chain(id sentinels.RunID) (hops int, path []string) {
	r := ex.live(id)
	if r == nil {
		return 0, nil
	}
	c := r.Chain()
	return c.Hops, c.Path
}

// Chain returns the chain of an event that the run emits now: the longest of the chains
// of the run that started it, of the event that its iteration answers and of those that
// steps of the iteration have waited for; the run itself is appended. Its path has also
// the sentinels of the others and of the runs above: all whose runs led to the event.
func (r *liveRun) Chain() chain {
	r.mu.Lock()
	defer r.mu.Unlock()
	return chainOf(r.begin, eventlog.ChainOf(r.folded.Event), eventlog.Chain(r.folded.Chain))
}

// statusChain is Chain for an event of the run itself, which may come before its first
// iteration and after its last one.
func (r *liveRun) statusChain() chain {
	r.mu.Lock()
	defer r.mu.Unlock()
	return chainOf(r.begin, eventlog.ChainOf(r.begin.Event), eventlog.ChainOf(r.folded.Event), eventlog.Chain(r.folded.Chain))
}

// chainOf returns the chain of a run with the chains of the events that it received.
func chainOf(begin *journal.RunStartBody, received ...chain) chain {
	c := chain{Hops: begin.Hops, Path: begin.Path}
	var others []string
	for _, id := range begin.Ancestry {
		others = append(others, string(id))
	}
	for _, o := range received {
		others = append(append(others, c.Path...), o.Path...)
		c = c.Longer(o)
	}
	return c.Including(others...).Through(begin.Sentinel)
}

// Emission implements [step.State]. The agent or model behind the run goes before the model that makes a call of it.
func (r *liveRun) Emission(by string) *eventlog.Emission {
	return eventlog.NewEmission(cmp.Or(r.EventsBy(), by), r.countEvent, func(size int64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.emitting -= size
	})
}

// countEvent counts an event of size bytes for the current iteration. It returns an
// error if the iteration would exceed its limit.
func (r *liveRun) countEvent(name string, size int64) error {
	limit := r.ex.svc.Limits.EventBytes
	r.mu.Lock()
	defer r.mu.Unlock()
	emitted := r.folded.EventBytes + r.emitting
	if emitted+size > limit {
		return &abi.Error{
			Code: abi.Limit,
			Message: fmt.Sprintf("eventBytes: event %q of %d bytes is too much for iteration %d: it has emitted %d bytes of events, the limit is %d",
				name, size, r.folded.Iteration, emitted, limit),
			Hint: "put the data where subscribers can read it, such as a file or a document, and emit its name",
		}
	}
	r.emitting += size
	return nil
}
