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

// originOf says what led to a run and its iteration, and which agents gave it something after its start, see
// [run.PendingDecision]. others are further parts of the text.
func originOf(begin *journal.RunStartBody, event *sentinels.Event, maker string, given []journal.Given, others []string) string {
	var parts []string
	add := func(text string) {
		if !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	for _, g := range given {
		if g.Kind == journal.GivenEdit || g.Kind == journal.GivenRevision && g.By != begin.As {
			add("with steps of " + g.By)
		}
	}
	if maker != "" && maker != begin.As {
		add("with steps of " + maker)
	}
	if revision.AgentOf(begin.As) != "" {
		add("started for " + begin.As)
	}
	if begin.GivenBy != "" && begin.GivenBy != begin.As {
		add("started by " + begin.GivenBy)
	}
	if event != nil && (event.By != "" || event.Source != "") {
		add(eventText(event))
	}
	for _, g := range given {
		switch {
		case g.Event != nil:
			add(eventText(g.Event))
		case g.Kind == journal.GivenEvent:
			add("after events of " + g.By)
		}
	}
	c := eventlog.ChainOf(event).Longer(chain{Hops: begin.Hops, Path: begin.Path})
	if len(c.Path) > 0 {
		add("after runs of " + strings.Join(c.Path, ", "))
	}
	return strings.Join(append(parts, others...), "; ")
}

func eventText(e *sentinels.Event) string {
	text := fmt.Sprintf("event %q from %s", e.Name, e.Source)
	if by := eventlog.GivenBy(e); by != "" && by != e.Source {
		text += ", emitted for " + by
	}
	return text
}

// elsewhere says which other runs of its tree executed steps that an agent or a model made and no person accepted, or were
// given something by one, and which revisions of theirs the run may start: that is part of what a person decides about. by is
// one of these. The agent that the run executes for is known.
func (ex *Executor) elsewhere(self run.Info) (parts []string, by string) {
	tree, err := ex.below(self.Root)
	if err != nil {
		return nil, "" // the run ends for the same reason
	}
	if top, err := ex.Status(self.Root); err == nil { // else retention has removed it
		tree = append(tree, top)
	}
	for _, other := range tree {
		if other.ID == self.ID {
			continue
		}
		if other.By != "" && other.By != self.By {
			by = other.By
			parts = append(parts, fmt.Sprintf("after steps of %s in %s", other.By, nameOf(other)))
		}
		for _, by = range other.GivenBy {
			parts = append(parts, fmt.Sprintf("after what %s gave run %s of %s", by, other.ID, other.Sentinel))
		}
	}
	ahead, err := ex.ahead(self.ID)
	if err != nil {
		ex.svc.Log.Warn("it is not known what a run that asks may start", "run", self.ID, "error", err)
	}
	for _, s := range ahead {
		by = EmitsFor(s)
		parts = append(parts, fmt.Sprintf("may start revision %d of %s by %s", s.Revision, s.ID, by))
	}
	slices.Sort(parts)
	return slices.Compact(parts), by
}

func nameOf(info run.Info) string {
	if info.Revision == 0 {
		return string(info.Sentinel)
	}
	return fmt.Sprintf("revision %d of %s", info.Revision, info.Sentinel)
}

// originBy returns the agent or model that gave the run, or one of those above it, what it works with, see
// [run.PendingDecision].
func (r *liveRun) originBy() string {
	for at := r; at != nil; at = at.parent {
		at.mu.Lock()
		e, given := at.folded.Event, at.folded.GivenBy()
		at.mu.Unlock()
		if by := cmp.Or(eventlog.GivenBy(e), at.begin.GivenBy); by != "" {
			return by
		}
		for _, by := range append(slices.Sorted(maps.Values(at.begin.InputsBy)), given...) {
			return by
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
