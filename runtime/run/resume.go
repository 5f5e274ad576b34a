package run

import (
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// PauseOptions say how a run is paused.
type PauseOptions struct {
	// By says who wants it. Default empty: not known.
	By string
	// Tree pauses every run below it too, also those that are started while it is
	// paused. Default: the run alone.
	Tree bool
}

// ResumeOptions say how a run continues.
type ResumeOptions struct {
	Extension   LimitExtension
	OnInterrupt sentinels.Interrupt // for calls in doubt where the definition says nothing
	By          string              // who resumes it, for its history
	// Comment says why. With one the run's quarantined steps may execute again.
	// Default: none, and they stay quarantined.
	Comment string
	// Tree resumes also the runs below that were paused with their tree. One
	// that was paused for itself stays so. Default: the run alone.
	Tree bool
}

// LimitExtension is what a resume adds to the limits of a run.
type LimitExtension struct {
	Iterations int     `json:"iterations,omitempty"`
	TimeoutMs  int64   `json:"timeoutMs,omitempty"`
	CostUSD    float64 `json:"costUsd,omitempty"`
	Tokens     int64   `json:"tokens,omitempty"`
	Calls      int64   `json:"calls,omitempty"`
}

// Add adds more to the extension.
func (l *LimitExtension) Add(more LimitExtension) {
	l.Iterations += more.Iterations
	l.TimeoutMs += more.TimeoutMs
	l.CostUSD += more.CostUSD
	l.Tokens += more.Tokens
	l.Calls += more.Calls
}
