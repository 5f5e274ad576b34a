package runtime

import (
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// What callers and observers see of runs, see package run.
type (
	RunInfo         = run.Info
	RunFilter       = run.Filter
	RunTotals       = run.Totals
	Result          = run.Result
	RetryWait       = run.RetryWait
	QueueWait       = run.QueueWait
	StepCrashes     = run.StepCrashes
	Decision        = run.Decision
	DecisionKind    = run.DecisionKind
	PendingDecision = run.PendingDecision
	GivenInput      = run.GivenInput
	StartOptions    = run.StartOptions
	StepCall        = run.StepCall
	PauseOptions    = run.PauseOptions
	StopOptions     = run.StopOptions
	ResumeOptions   = run.ResumeOptions
	LimitExtension  = run.LimitExtension
	ForkOptions     = run.ForkOptions
	EditRunOptions  = run.EditOptions
	RunEdit         = run.Edit
	RunVersion      = run.Version
	Recovery        = run.Recovery
	Doubt           = run.Doubt
	Quarantine      = run.Quarantine
	Unrestored      = run.Unrestored
)

// The kinds of a [PendingDecision].
const (
	DecisionApproval   = run.DecisionApproval
	DecisionDoubt      = run.DecisionDoubt
	DecisionQuarantine = run.DecisionQuarantine
)

// Unfinished returns the statuses of runs that are not over.
func Unfinished() []sentinels.Status { return run.Unfinished() }

// Runs returns summaries, the newest first. A run is among them from the moment
// its id is known. Summaries that cannot be read are left out and are the error,
// beside what could be.
func (rt *Runtime) Runs(f RunFilter) ([]RunInfo, error) { return rt.index.List(f) }

// Totals returns totals of the runs of a sentinel, zero if it has none. The first call
// of a process reads every run, later calls read none.
func (rt *Runtime) Totals(id sentinels.ID) (RunTotals, error) { return rt.index.Totals(id) }
