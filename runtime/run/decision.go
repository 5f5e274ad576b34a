package run

import (
	"encoding/json"
	"strconv"
	"time"
)

// A PendingDecision is something that a person has to decide before a run continues.
type PendingDecision struct {
	Call string `json:"call"` // name of the decision: path!number; see [Decision]
	// Question names what is asked. The same call asks another question in the next
	// iteration, in another attempt, and with another prompt. Empty for one that an earlier
	// version of the program asked.
	Question  string       `json:"question,omitempty"`
	Kind      DecisionKind `json:"kind"`
	Prompt    string       `json:"prompt"`
	Approvers []string     `json:"approvers,omitempty"` // empty: every user
	// CallKind is, for the approval of a call, the kind of calls that it covers until the step ends: the
	// name of a command, or a program with its plain words, such as "go test". Empty for an approval of
	// one call, and for any other question.
	CallKind string    `json:"callKind,omitempty"`
	Choices  []string  `json:"choices"`
	Since    time.Time `json:"since"`
	// Deadline is when an approval that has a time limit ends without a decision, in calendar time. It is that of
	// the first process that asked. TimeoutMs is the limit. Both are zero without one.
	Deadline  time.Time `json:"deadline,omitzero"`
	TimeoutMs int64     `json:"timeoutMs,omitempty"`
	// Origin is what led to the run besides the person who decides: the event that it handles,
	// with its source, the agent or model behind that, and the sentinels on the way. Empty for a
	// run that a person or a trigger started by itself.
	Origin string `json:"origin,omitempty"`
	// OriginBy is the agent for which the event was emitted that the run or one above it handles, or that started one of
	// them or gave it inputs, or that gave something to another run of its tree; or "model". Empty for any other run.
	OriginBy string `json:"originBy,omitempty"`
}

// Expired reports whether the time limit of an approval has ended at a time, so that a decision is refused. Where a
// process executes the run, the step ends at that time.
func (d PendingDecision) Expired(now time.Time) bool {
	return !d.Deadline.IsZero() && !now.Before(d.Deadline)
}

// LimitEnded says that the time limit of an approval has ended, and when.
func LimitEnded(timeoutMs int64, deadline time.Time) string {
	length := strconv.FormatInt(timeoutMs, 10) + " ms"
	if timeoutMs%1000 == 0 {
		length = strconv.FormatInt(timeoutMs/1000, 10) + " s"
	}
	return "the limit of " + length + " ended at " + deadline.UTC().Format(time.RFC3339)
}

// DecisionKind is approval, doubt or quarantine.
type DecisionKind string

// The kinds of pending decisions.
const (
	DecisionApproval   DecisionKind = "approval"   // approve or reject
	DecisionDoubt      DecisionKind = "doubt"      // retry, skip or fail a call that a crash interrupted
	DecisionQuarantine DecisionKind = "quarantine" // retry or fail a step that was executing at several crashes
)

// Choices returns the verdicts that a decision of the kind may have.
func (k DecisionKind) Choices() []string {
	switch k {
	case DecisionDoubt:
		return []string{"retry", "skip", "fail"}
	case DecisionQuarantine:
		return []string{"retry", "fail"}
	}
	return []string{"approve", "reject"}
}

// A Decision answers a [PendingDecision].
type Decision struct {
	Call string // name of the pending decision; may be empty if there is only one or Question is set
	// Question is that of the pending decision. If the run asks another one by now, the decision
	// is the error conflict. Default empty: whatever is asked.
	Question string
	Verdict  string          // one of its choices
	By       string          // who decided
	Comment  string          // why; required to retry a step that is quarantined
	Result   json.RawMessage // with skip: result of the call that is skipped
}

// A GivenInput is an input of a run, or of another one of its tree, that an agent or a model gave, or an event that the run
// handles or that a step of it waited for.
type GivenInput struct {
	Run   Info   // that has the input
	Of    string // the same in words; empty for the run that was asked for
	Name  string
	Event bool            // Value is the event, and Name its type
	By    string          // agent:NAME, or model
	Value json.RawMessage // without secrets
}
