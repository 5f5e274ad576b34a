package step

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// A Run is the run that steps belong to.
//
// # Concurrency
//
// All methods are safe for concurrent use: branches of a parallel block execute at the
// same time.
type Run interface {
	Identity
	Journal
	State
	Schedule
	Budget
	Decisions
	Children
}

// Identity returns what never changes in a run.
type Identity interface {
	ID() sentinels.RunID
	// Start returns the first record of the run. It must not be changed.
	Start() *journal.RunStartBody
}

// Journal records and reports what steps do.
type Journal interface {
	// Write appends records to the run's journal in one commit and applies them to the
	// run's state.
	Write(c Commit, records ...*journal.Record) *store.Ticket
	// Report passes progress to the observer.
	Report(p run.Progress)
}

// A Commit configures how records are written.
type Commit struct {
	Lazy    bool        // the caller does not wait for the commit
	Summary bool        // the run's summary has changed and is written as well
	Puts    []store.Put // written in the same commit
}

// State is the state of the run, folded from its records.
type State interface {
	Iteration() int
	// Definition returns the definition that the current iteration uses.
	Definition() *sentinels.Definition
	// Within returns the commands that the run may call in the current iteration, nil for
	// all: the bound of the run and that of the definition.
	Within() []string
	// As returns for whom the run executes: the agent that made the definition of the current
	// iteration, else that of the start. Empty for none.
	As() string
	// NamedCommands returns the commands that the definition of the current iteration names, and
	// entries for the types of its steps.
	NamedCommands() []string
	// EmitsFor returns the agent or model that the run executes for, "" for none.
	EmitsFor() string
	// EventsBy returns the agent or model behind the events of the run: that of EmitsFor, or of the event that
	// the run handles. "" for none.
	EventsBy() string
	// Plugins returns the plugins that the current iteration uses.
	Plugins() *pluginset.View
	// RecordedStep returns what the journal contains of a step execution in an
	// iteration that a crash interrupted; nil otherwise.
	RecordedStep(path string, enclosing []int) *history.Execution
	// BranchScope returns the scope of an open parallel branch.
	BranchScope(key string) Scope
	// Lookup returns the names that references of a scope may use. retry is the value of
	// $retry, nil outside a repeated attempt.
	Lookup(sc Scope, retry json.RawMessage) reference.Lookup
	// Names returns the names of the definition that the current iteration uses.
	Names() *sentinels.Variables
	// FailedStep returns the address of the innermost step that failed.
	FailedStep() string
	// RAGContext returns $ragContext of the iteration, nil without one.
	RAGContext() json.RawMessage
	// Cursor returns the offset in the event log after which the run waits for events
	// that match a pattern.
	Cursor(pattern string) uint64
	// Chain returns the chain of an event that the run emits now.
	Chain() eventlog.Chain
	// Emission returns a counter for the events of one host call. by is the agent or model that makes the call, "" for
	// the step itself.
	Emission(by string) *eventlog.Emission
	// CountStep counts a step execution of the iteration. The error is a [LimitError]
	// if there are more than the limit.
	CountStep(address string) error
	// ShowRetry shows in the run's status that a step waits for its next attempt, until
	// the returned function is called.
	ShowRetry(w *run.RetryWait) (over func())
	// ShowQueue shows in the run's status that something waits because a limit of what may
	// execute at once is reached, until the returned function is called.
	ShowQueue(w *run.QueueWait) (over func())
	// Crashes returns the crashes of the host that are counted against a step.
	Crashes(path string) run.StepCrashes
}

// A Scope reads the variables that a list of steps sees: those of the run, or of
// a branch of a parallel block. Only records change them.
type Scope interface {
	Get(name string) (json.RawMessage, bool)
	// Last returns the value of the step that ended last, nil if there is none.
	Last() json.RawMessage
	// Order returns the names of the variables that the run has set, the newest last.
	// Inherited ones are not among them.
	Order() []string
	// Size returns the size of the variables, names and values, in bytes.
	Size() int64
	// Variables returns a copy of the variables, without outputs of steps that are kept by
	// id; the values are shared.
	Variables() map[string]json.RawMessage
}

// Schedule controls when steps of the run execute.
type Schedule interface {
	// Enter takes an execution slot for the run if it holds none. Each Enter needs a
	// Leave; the last one releases the slot.
	Enter(ctx context.Context) error
	Leave()
	// WaitWhilePaused blocks while the run is paused or the runtime is read-only.
	WaitWhilePaused(ctx context.Context) error
	// Paused reports whether WaitWhilePaused would block.
	Paused() bool
	// EndContext returns the context of onFailure and finally, which does not end with that of the run. A run
	// that ends while it is paused is resumed for them.
	EndContext() context.Context
	// Clock returns the active time of the run.
	Clock() *clock.Active
	// Work counts the goroutines behind host calls. The run ends after them.
	Work() *sync.WaitGroup
	// Cancel ends the run.
	Cancel(cause error)
	// MemoryLimit returns how much memory variables, guests and processes of the run
	// may use, in bytes.
	MemoryLimit() int64
	// VariableLimit returns how many bytes the variables of the run may have.
	VariableLimit() int64
	// MemoryHint says how to raise the limit of memory that the setting is the default of.
	MemoryHint(setting string) string
	// RecordTurn records which suspected step of the run has its turn, "" for none.
	RecordTurn(path string) *store.Ticket
}

// Budget is the run's part of the budget of its tree.
type Budget interface {
	// Reserve reserves the worst case of a model call and returns what it has reserved,
	// which may be for a shorter reply. At a limit it returns the error that ends the
	// run, or pauses the run until a resume extends the limit.
	Reserve(ctx context.Context, quote external.ModelQuote) (sentinels.Usage, error)
	ReserveAgain(worst sentinels.Usage)
	Settle(worst, spent sentinels.Usage)
	Charge(spent sentinels.Usage)
}

// Decisions wait for decisions of people.
type Decisions interface {
	// AwaitDecision waits for a decision; the status of the run is waiting meanwhile. A
	// decision that the journal contains is returned at once. attempt is that of the step.
	AwaitDecision(ctx context.Context, name string, attempt int, what run.PendingDecision) (*journal.SignalBody, error)
	// LiftQuarantine forgets the crashes that are counted against a step.
	LiftQuarantine(path string)
	// OnInterrupt returns the setting for calls in doubt of the step, the definition,
	// the run or the host; empty if none is set.
	OnInterrupt(step sentinels.Interrupt) sentinels.Interrupt
}

// Children are the runs that the steps of the run start.
type Children interface {
	// AdmitChild reports whether the run may start a child now, or has started the one with the key. The caller calls begun after
	// [Children.StartChild] has returned.
	AdmitChild(key string) (begun func(), ok bool, err error)
	// AwaitChildStart waits until the run may start a child. begun is that of AdmitChild.
	AwaitChildStart(ctx context.Context) (begun func(), err error)
	// ChildWait says what AwaitChildStart waits for.
	ChildWait() string
	StartChild(ctx context.Context, def *sentinels.Definition, opt ChildOptions) (sentinels.RunID, error)
	// AwaitRun waits until a run ends. [ErrShutdown] is the error when the process
	// releases it before.
	AwaitRun(ctx context.Context, id sentinels.RunID) (run.Result, error)
	// AwaitStep waits for a run that executes one step and returns the output of the step,
	// or its error. If ctx ends before, the run is stopped.
	AwaitStep(ctx context.Context, id sentinels.RunID) (json.RawMessage, error)
	// FindRun returns the run that was started with a key.
	FindRun(key string) (id sentinels.RunID, ok bool, err error)
	// StopRun stops a run and those below it.
	StopRun(id sentinels.RunID, cause error)
}

// ChildOptions configure a child run.
type ChildOptions struct {
	Key      string // start key
	Inputs   map[string]json.RawMessage
	Revision int          // revision of a stored definition, 0 for one that is written in the step
	Inherit  Scope        // of an inline definition: the scope of its step; else nil
	Identity sentinels.ID // and the identity of its run

	// Workspace is that of an inline definition with its references resolved; "" is the
	// parent's.
	Workspace string
	Drafted   bool // the definition is the value of a variable
}
