package ticket

import (
	"context"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// actions are the decisions about a ticket, with the states that they lead to.
var actions = map[string]State{"release": Ready, "reject": Cancelled, "accept": Done, "hold": OnHold}

// Choices returns the decisions that the state of the ticket allows.
func (t *Ticket) Choices() []string {
	var list []string
	for _, name := range []string{"release", "accept", "reject", "hold"} {
		if slices.Contains(Moves[t.State], actions[name]) {
			list = append(list, name)
		}
	}
	return list
}

// waitsSince returns since when the ticket has waited for a person, the zero time if it
// does not.
func (t *Ticket) waitsSince() time.Time {
	switch t.State {
	case OnHold, Blocked:
		if t.HeldAt != nil {
			return *t.HeldAt
		}
		return t.UpdatedAt
	case NeedsReview:
		return t.UpdatedAt
	}
	return time.Time{}
}

// Waiting calls fn with the tickets that have waited for a person since a time or later,
// the oldest first, until fn returns false: those that agents created, or all others. agent is that of
// the ticket.
func (s *Service) Waiting(ctx context.Context, tx Tx, ofAgents bool, from time.Time, fn func(v View, since time.Time, agent string) bool) error {
	r := runtime.DocumentRange{Equal: []any{ofAgents}}
	if !from.IsZero() {
		r.From = []any{from}
	}
	now := s.Now()
	var bad error
	err := tx.ScanIndex(ctx, byWait, r, func(_ string, d sentinels.Document) bool {
		var t *Ticket
		if t, bad = read(d); bad != nil {
			return false
		}
		return fn(t.View(now), t.waitsSince(), revision.AgentOf(t.CreatedBy))
	})
	if err == nil {
		err = bad
	}
	return err
}
