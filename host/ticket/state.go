package ticket

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// State is where a ticket is.
type State string

// The states.
const (
	Draft          State = "draft"           // not to be worked on yet
	Ready          State = "ready"           // workers claim it
	InProgress     State = "in_progress"     // a worker has it
	SentinelFailed State = "sentinel_failed" // rejected by a reviewer; becomes ready or on_hold at once
	InReview       State = "in_review"       // reviewers claim it
	Approved       State = "approved"        // deployers claim it
	Done           State = "done"
	NeedsReview    State = "needs_review" // was done, and a later change touched the same files
	Blocked        State = "blocked"      // verification cannot pass or run, review has no result, or work is to be approved: a person decides
	OnHold         State = "on_hold"      // retries are used up: a person decides
	Cancelled      State = "cancelled"
)

// Moves lists the states that may follow each state.
var Moves = map[State][]State{
	Draft:          {Ready, Cancelled},
	Ready:          {Draft, InProgress, Blocked, OnHold, Cancelled},
	InProgress:     {Ready, InReview, Approved, SentinelFailed, Blocked, OnHold, Done, Cancelled},
	InReview:       {Ready, Approved, SentinelFailed, Blocked, OnHold, Done, Cancelled},
	SentinelFailed: {Ready, OnHold},
	Approved:       {Ready, SentinelFailed, Blocked, OnHold, Done, Cancelled},
	Blocked:        {Ready, InReview, Approved, OnHold, Done, Cancelled},
	OnHold:         {Ready, Cancelled},
	NeedsReview:    {Ready, Done, OnHold, Cancelled},
	Done:           {Ready, NeedsReview},
	Cancelled:      {Ready},
}

// aliases are names of states in older trackers.
var aliases = map[string]State{
	"complete": Done, "completed": Done, "merged": Done, "pending": Ready, "assigned": InProgress, "verifying": InProgress,
	"reviewing": InReview, "changes_requested": SentinelFailed, "failed": Cancelled,
}

// ParseState reads a state, or the name that an older tracker has for it.
func ParseState(text string) (State, error) {
	s := State(strings.ToLower(strings.TrimSpace(text)))
	if _, ok := Moves[s]; ok {
		return s, nil
	}
	if s, ok := aliases[string(s)]; ok {
		return s, nil
	}
	return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "state", Message: fmt.Sprintf("unknown state %.40q", text),
		Hint: "known are " + join(States())}
}

// States returns all states, sorted.
func States() []State {
	var list []State
	for s := range Moves {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

func join[T ~string](list []T) string {
	var text []string
	for _, s := range list {
		text = append(text, string(s))
	}
	return strings.Join(text, ", ")
}

// Role is what kind of agent claims.
type Role string

// The roles.
const (
	Worker   Role = "worker"
	Reviewer Role = "reviewer"
	Deployer Role = "deployer"
)

// queues are the states that roles claim from.
var queues = map[Role]State{Worker: Ready, Reviewer: InReview, Deployer: Approved}

// ParseRole reads a role; an empty text is worker.
func ParseRole(text string) (Role, error) {
	if text == "" {
		return Worker, nil
	}
	if _, ok := queues[Role(text)]; ok {
		return Role(text), nil
	}
	return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "role", Message: fmt.Sprintf("unknown role %.40q", text),
		Hint: "known are worker, reviewer and deployer"}
}

// inQueue reports whether agents claim tickets in a state.
func inQueue(s State) bool { return s == Ready || s == InReview || s == Approved }

// move changes the state, or is the error conflict.
func (t *Ticket) move(to State) error {
	if t.State == to {
		return nil
	}
	if !slices.Contains(Moves[t.State], to) {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "state",
			Message: fmt.Sprintf("ticket %s is %s and cannot become %s", t.ID, t.State, to),
			Hint:    fmt.Sprintf("from %s it can become %s", t.State, join(Moves[t.State]))}
	}
	t.State = to
	return nil
}
