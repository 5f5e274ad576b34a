package history

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestGivenIsBounded: any number of events and revisions leaves the authors of all of them, and the contents of the newest.
func TestGivenIsBounded(t *testing.T) {
	s := &State{Iteration: 1}
	s.give(journal.Given{By: "agent:first", Kind: journal.GivenEvent, Event: &sentinels.Event{Name: "go"}})
	s.give(journal.Given{By: "agent:first", Kind: journal.GivenRevision, Number: 2, Before: 1})
	for i := range 2 * maxGivenRevisions {
		s.give(journal.Given{By: "agent:ci", Kind: journal.GivenRevision, Number: i + 3, Before: i + 2})
		s.give(journal.Given{By: "agent:ci", Kind: journal.GivenEvent, Event: &sentinels.Event{Name: "go", Data: json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)}})
	}
	events, revisions := 0, 0
	for _, g := range s.Given {
		if g.Event != nil {
			events += len(g.Event.Data)
		}
		if g.Number != 0 {
			revisions++
		}
	}
	if events > maxGivenEvents || events < maxGivenEvents/2 || revisions != maxGivenRevisions {
		t.Errorf("%d bytes of events and %d revisions are kept", events, revisions)
	}
	if by := s.GivenBy(); len(by) != 2 || by[0] != "agent:first" || by[1] != "agent:ci" {
		t.Errorf("by %q", by)
	}
	s.Given = s.GivenAtEnd("")
	for _, g := range s.Given {
		if g.Event != nil {
			t.Errorf("after the iteration: %+v", g)
		}
	}
	if len(s.GivenBy()) != 2 {
		t.Errorf("after the iteration: by %q", s.GivenBy())
	}
}
