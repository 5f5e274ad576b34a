package learning

import (
	"context"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A View is a rule with what its numbers say.
type View struct {
	Rule
	// Effectiveness is the share of attempts with the rule that succeeded, nil before the
	// first verdict.
	Effectiveness *float64 `json:"effectiveness"`
}

// View returns the rule with what its numbers say.
func (r Rule) View() View {
	v := View{Rule: r}
	if n := r.Succeeded + r.Failed; n > 0 {
		share := float64(r.Succeeded) / float64(n)
		v.Effectiveness = &share
	}
	return v
}

// Add adds the rule of a person, which is active at once, or a proposal. A rule with the
// same text and scope is found instead: a person makes it active and sets its priority, and
// a proposal leaves it as it is.
func (l *Learner) Add(ctx context.Context, tx ticket.Tx, r Rule) (View, error) {
	if r.Kind == "" {
		r.Kind = Advice
	}
	if r.Priority == 0 {
		r.Priority = defaultPriority
	}
	if err := r.check(); err != nil {
		return View{}, err
	}
	r.ID = idOf("text", r.Kind, r.Text, r.Scope)
	old, revision, err := find(ctx, tx, r.ID)
	if err != nil {
		return View{}, err
	}
	person, by, was := r.Source.Kind == Person, r.Source.By, State("")
	if old != nil {
		if !person {
			return old.View(), nil
		}
		old.Priority = r.Priority
		was = old.State
		r = *old
	} else {
		r.CreatedAt, r.State = l.now(), Proposed
	}
	if person && (r.State != Active || r.DecidedBy == Measurement) {
		l.decided(&r, Active, by, "")
	}
	if err := room(ctx, tx, was, r.State); err != nil {
		return View{}, err
	}
	return r.View(), write(ctx, tx, &r, was, revision)
}

// room refuses one more rule in a state that is full.
func room(ctx context.Context, tx ticket.Tx, was, to State) error {
	limit, ok := map[State]int{Proposed: maxProposed, Active: maxActive}[to]
	if !ok || was == to {
		return nil
	}
	n, err := counts(ctx, tx)
	if err == nil && n[to] >= limit {
		err = &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%d rules are %s, at most %d", n[to], to, limit), Hint: "retire or remove some: ticket/decide-rule"}
	}
	return err
}

// decided gives a rule a state, and begins its measurement again.
func (l *Learner) decided(r *Rule, to State, by, why string) {
	now := l.now()
	r.State, r.DecidedAt, r.DecidedBy, r.Reason, r.Trial = to, &now, by, why, Trial{}
}

// Decide accepts, retires or removes a rule, because a person wants it.
func (l *Learner) Decide(ctx context.Context, tx ticket.Tx, id, action, by string) (View, error) {
	r, revision, err := load(ctx, tx, id)
	if err != nil {
		return View{}, err
	}
	was, to := r.State, Retired
	switch action {
	case "accept":
		to = Active
	case "retire":
	case "remove":
		if err := tx.Delete(ctx, Collection, id, revision); err != nil {
			return View{}, err
		}
		return r.View(), count(ctx, tx, was, "")
	default:
		return View{}, bad("action", "%.40q: want accept, retire or remove", action)
	}
	if err := room(ctx, tx, was, to); err != nil {
		return View{}, err
	}
	l.decided(r, to, by, "")
	return r.View(), write(ctx, tx, r, was, revision)
}

// List returns the rules in these states, by default those that are proposed, active and
// retired, in the order in which they are offered.
func (l *Learner) List(ctx context.Context, tx ticket.Tx, states []State) ([]View, error) {
	if len(states) == 0 {
		states = []State{Active, Proposed, Retired}
	}
	out := []View{}
	for _, state := range states {
		if !slices.Contains([]State{Seen, Proposed, Active, Retired}, state) {
			return out, bad("state", "unknown state %.40q: want seen, proposed, active or retired", state)
		}
		list, err := scan(ctx, tx, state, 0)
		if err != nil {
			return out, err
		}
		for _, r := range list {
			out = append(out, r.View())
		}
	}
	return out, nil
}
