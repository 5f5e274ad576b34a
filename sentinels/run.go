package sentinels

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// RunID is a UUIDv7 in its text form.
type RunID string

// WellFormed reports whether a text has the form of a run's id. No sentinel has such an id, so that
// a name never means another than the run that it is the id of.
func (id RunID) WellFormed() bool {
	if len(id) != 36 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// Status is the state of a run.
type Status string

// The statuses of a run. A sentinel without a run has the status "idle".
const (
	StatusRunning     Status = "running"
	StatusQueued      Status = "queued" // its steps begin when it has its turn
	StatusPaused      Status = "paused"
	StatusCompleted   Status = "completed"
	StatusFailed      Status = "failed"
	StatusStopped     Status = "stopped"
	StatusTimedOut    Status = "timed_out"
	StatusWaiting     Status = "waiting"     // for a decision
	StatusQuarantined Status = "quarantined" // for a decision: a step was executing at too many crashes of the host
)

// Statuses returns all statuses of runs.
func Statuses() []Status {
	return []Status{StatusRunning, StatusQueued, StatusPaused, StatusWaiting, StatusQuarantined, StatusCompleted, StatusFailed, StatusStopped, StatusTimedOut}
}

// Final reports whether a run with this status has ended.
func (s Status) Final() bool {
	switch s {
	case StatusCompleted, StatusFailed, StatusStopped, StatusTimedOut:
		return true
	}
	return false
}

// Usage is the tokens and the cost of model calls.
type Usage struct {
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	CostUSD      float64 `json:"costUsd"`
	Calls        int64   `json:"calls"`
}

// Add adds o to u. A sum that an integer does not hold is the largest or smallest one: a sum that
// wrapped around would be below every limit.
func (u *Usage) Add(o Usage) {
	u.InputTokens = saturated(u.InputTokens, o.InputTokens)
	u.OutputTokens = saturated(u.OutputTokens, o.OutputTokens)
	u.CostUSD += o.CostUSD
	u.Calls = saturated(u.Calls, o.Calls)
}

// Tokens returns those of input and output together, with the bounds of [Usage.Add].
func (u Usage) Tokens() int64 { return saturated(u.InputTokens, u.OutputTokens) }

// saturated returns a sum within the bounds of an int64.
func saturated(a, b int64) int64 {
	switch sum := a + b; {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

// An Event is a CloudEvents 1.0 record. Name is the CloudEvents type, such as
// "git:push". ID is derived from the host call that emitted it, so that another
// attempt emits the same event.
type Event struct {
	ID     string `json:"id"`
	Name   string `json:"type"`
	Source string `json:"source"`
	// Subject identifies what the event is about within the source, as in
	// CloudEvents. Events from other systems may have one.
	Subject string          `json:"subject,omitempty"`
	Time    time.Time       `json:"time"`
	Data    json.RawMessage `json:"data,omitempty"`
	Hops    int             `json:"hops,omitempty"` // number of runs in the chain of events that led to this one
	Path    []string        `json:"path,omitempty"` // ids of the sentinels of these runs, in order
	// By is the agent ("agent:ci") for which a call or run emitted the event, or "model" if that run was
	// bounded to the commands of the author of its definition. The events of a run that such an event
	// started have it too. Empty for all others.
	By string `json:"by,omitempty"`
	// Batch has the events that a debounce joined, the oldest first and this one last.
	// Default: there was no debounce.
	Batch []BatchedEvent `json:"batch,omitempty"`
}

// EventFields returns the names that belong to the event in $event, also while the event has no
// such field. All other fields of $event are those of its data.
func EventFields() []string {
	return []string{"id", "type", "name", "source", "time", "by", "subject", "data", "batch"}
}

// A BatchedEvent is one of the events of [Event.Batch].
type BatchedEvent struct {
	ID      string          `json:"id"`
	Name    string          `json:"type"`
	Source  string          `json:"source"`
	Subject string          `json:"subject,omitempty"`
	Time    time.Time       `json:"time"`
	Data    json.RawMessage `json:"data,omitempty"`
	By      string          `json:"by,omitempty"`
}

// MatchEvent reports whether name matches pattern. Segments are separated by colons;
// "*" matches one segment, a final "**" all that follow. Patterns that a space separates
// are alternatives. Events with the form of events of runs match only patterns of that form, see
// [IsRunEvent]; the word "ended" of such a pattern matches every end of a run. Whose events of that
// form a reader takes is decided by [TakesEvent].
func MatchEvent(pattern, name string) bool {
	if one, others, several := strings.Cut(pattern, " "); several {
		return MatchEvent(one, name) || MatchEvent(others, name)
	}
	if strings.HasPrefix(name, RunEventPrefix) && IsRunEvent(name) {
		if !IsRunEvent(pattern) {
			return false
		}
		if of, ended := strings.CutSuffix(pattern, ":"+RunEnded); ended {
			if _, word := runEventParts(name); Status(word).Final() {
				pattern = of + ":*"
			}
		}
	}
	for {
		if pattern == "**" {
			return true
		}
		want, morePattern, wantMore := strings.Cut(pattern, ":")
		have, moreName, haveMore := strings.Cut(name, ":")
		if want != have && (want != "*" || have == "") {
			return false
		}
		if !wantMore || !haveMore {
			return wantMore == haveMore
		}
		pattern, name = morePattern, moreName
	}
}

// ValidPattern reports whether pattern is valid: no empty segment, "*" only as a whole
// segment, "**" only as the last.
func ValidPattern(pattern string) bool {
	segments := strings.Split(pattern, ":")
	for i, segment := range segments {
		switch {
		case segment == "", strings.ContainsAny(segment, " \t\r\n"):
			return false
		case segment == "*", segment == "**" && i == len(segments)-1:
		case strings.Contains(segment, "*"):
			return false
		}
	}
	return true
}
