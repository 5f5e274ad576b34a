package sentinels

import (
	"encoding/json"
	"strings"
	"time"
)

// RunID is a UUIDv7 in its text form.
type RunID string

// Status is where a run stands.
type Status string

// The statuses of a run. A sentinel without a run is "idle", which no run has.
const (
	StatusRunning     Status = "running"
	StatusPaused      Status = "paused"
	StatusCompleted   Status = "completed"
	StatusFailed      Status = "failed"
	StatusStopped     Status = "stopped"
	StatusTimedOut    Status = "timed_out"
	StatusWaiting     Status = "waiting"     // for a person
	StatusQuarantined Status = "quarantined" // for a person: a step was executing at too many crashes of the host
)

// Final reports whether a run with this status is over.
func (s Status) Final() bool {
	switch s {
	case StatusCompleted, StatusFailed, StatusStopped, StatusTimedOut:
		return true
	}
	return false
}

// Usage is what model calls cost.
type Usage struct {
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	CostUSD      float64 `json:"costUsd"`
	Calls        int64   `json:"calls"`
}

// Add adds o to u.
func (u *Usage) Add(o Usage) {
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.CostUSD += o.CostUSD
	u.Calls += o.Calls
}

// An Event is a CloudEvents 1.0 record. Name is the CloudEvents type, such as
// "git:push". ID is derived from the call that emitted it, so a repeated
// attempt makes the same event.
type Event struct {
	ID     string `json:"id"`
	Name   string `json:"type"`
	Source string `json:"source"`
	// Subject is what within the source the event is about, as CloudEvents have
	// it; events from elsewhere may bring one.
	Subject string          `json:"subject,omitempty"`
	Time    time.Time       `json:"time"`
	Data    json.RawMessage `json:"data,omitempty"`
	Hops    int             `json:"hops,omitempty"` // how many runs the chain has passed through
	Path    []string        `json:"path,omitempty"` // ids of the sentinels they are of, in order
}

// MatchEvent reports whether name fits pattern, segment by segment between
// colons; "*" stands for one segment, a final "**" for the rest.
func MatchEvent(pattern, name string) bool {
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

// ValidPattern reports whether pattern can match an event: segments that are
// not empty, "*" alone in its segment, "**" alone in the last one.
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
