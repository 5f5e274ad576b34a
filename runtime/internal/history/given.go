package history

import (
	"cmp"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// Bounds of what is kept of all that a run was given. Of what is older, only the author and the kind stay. Who edits a run is
// refused instead, see package execution, so edits need no bound here.
const (
	maxGivenEvents    = 64 << 10 // bytes
	maxGivenRevisions = 500
)

// give adds what an agent or a model gave to the run. Nothing removes it.
func (s *State) give(g journal.Given) {
	g.Iteration = s.Iteration
	s.Given = boundGiven(append(slices.Clone(s.Given), g), maxGivenEvents)
}

// GivenAtEnd returns what the run was given until the end of an iteration. Of events the authors stay, whose data may be in variables:
// the next iteration has events of its own, and all of a loop that handles them would be too many to show. handledBy is the
// author of the event that the iteration handled, if it was given later than the run's start.
func (s *State) GivenAtEnd(handledBy string) []journal.Given {
	list := slices.Clone(s.Given)
	if handledBy != "" && s.EventSeq != 0 {
		list = append(list, journal.Given{By: handledBy, Kind: journal.GivenEvent, Iteration: s.Iteration})
	}
	return boundGiven(list, 0)
}

// boundGiven reduces what is oldest, in place, so that a list stays within its bounds, and joins what differs in nothing but the iteration.
func boundGiven(list []journal.Given, events int) []journal.Given {
	revisions := maxGivenRevisions
	for i := len(list) - 1; i >= 0; i-- {
		switch g := &list[i]; {
		case g.Event != nil:
			if events -= len(g.Event.Name) + len(g.Event.Data); events < 0 {
				g.Event = nil
			}
		case g.Number != 0:
			if revisions--; revisions < 0 {
				g.Number, g.Before = 0, 0
			}
		}
	}
	var kept []journal.Given
	for _, g := range list {
		same := func(o journal.Given) bool { return reduced(o) && o.By == g.By && o.Kind == g.Kind }
		if i := slices.IndexFunc(kept, same); i >= 0 && reduced(g) {
			kept[i].Iteration = g.Iteration
		} else {
			kept = append(kept, g)
		}
	}
	return kept
}

// reduced reports whether only the author and the kind are kept.
func reduced(g journal.Given) bool { return g.Event == nil && g.Number == 0 && g.Changes == "" }

// GivenBy returns the authors of what the run was given, each once.
func (s *State) GivenBy() (list []string) {
	for _, g := range s.Given {
		if !slices.Contains(list, g.By) {
			list = append(list, g.By)
		}
	}
	return list
}

// maker returns who made a definition that has a bound.
func maker(agent string) string { return cmp.Or(agent, "model") }
