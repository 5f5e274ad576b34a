package run

import (
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// PauseOptions configure a pause.
type PauseOptions struct {
	// By is the user who pauses the run. Default empty: not known.
	By string
	// Over makes the pause of a run that another user has paused one of this user. Default: it
	// stays the other's.
	Over bool
	// Tree also pauses every descendant, including those that are started while the run
	// is paused. Default: the run alone.
	Tree bool
}

// StopOptions configure a stop.
type StopOptions struct {
	// By is the user who stops the run. Default empty: not known.
	By string
	// Over makes the stop of a run that another user is stopping one of this user. Default: it
	// stays the other's.
	Over bool
}

// ResumeOptions configure a resume.
type ResumeOptions struct {
	// Over refuses, with its error, to end the pause of the user by. It is called where the pause
	// ends, so that one which comes during the resume is not ended unseen. With Tree, descendants
	// for which it returns an error stay paused. Default nil: every pause ends.
	Over        func(by string) error
	Extension   LimitExtension
	OnInterrupt sentinels.Interrupt // decides about calls in doubt if the definition does not
	By          string              // user who resumes the run
	// Comment is the reason. With a comment, quarantined steps execute again. Default
	// empty: they stay quarantined.
	Comment string
	// Workspace is the absolute path of the folder that the run works in from now on, with those of
	// its descendants below the one before. Only a run that no process executes is moved.
	// Default: the one that it has.
	Workspace string
	// Tree also resumes descendants that were paused with their tree. One that was
	// paused by itself stays paused. Default: the run alone.
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
