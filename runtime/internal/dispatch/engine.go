package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/redact"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options are what a [Dispatcher] needs of the engine. All functions must be safe
// for concurrent use; those without a default are required.
type Options struct {
	Store       store.Store
	Runs        Runs
	Definitions Definitions
	Events      EventLog

	// Kinds are the kinds of triggers that can be armed. Default none.
	Kinds triggers.Set
	// Secret returns the value of a secret that a trigger names. Default: there
	// are none.
	Secret func(name string) (value string, ok bool)
	// Redact removes secrets from events before they are stored. Default: nothing is one.
	Redact redact.Redactor
	// Filter evaluates the filter of a trigger for an event, nil for none. A
	// filter that fails is an error, never false.
	Filter func(ctx context.Context, id sentinels.ID, condition string, e *sentinels.Event) (bool, error)
	// ChainProblem returns why an event may not start another run of a sentinel
	// because its chain of events is too long, "" if it may.
	ChainProblem func(id sentinels.ID, e *sentinels.Event) string
	// Workspace returns the absolute folder that a definition works in.
	Workspace func(r Revision, def *sentinels.Definition) (string, error)
	// Now is the wall clock that kinds see. Default [time.Now].
	Now func() time.Time
	// NewRunID returns a new id for a run.
	NewRunID func() sentinels.RunID

	// Alive returns an error once the engine closes.
	Alive func() error
	// Writable returns why the engine takes no changes now, nil if it does.
	Writable func() error
	// Await waits for a commit for a caller that must know its result. It returns
	// an error at once while the store stalls.
	Await func(ctx context.Context, t *store.Ticket) error
	// Settle waits for a commit of which no caller depends. While the store stalls
	// it returns nil: the commit is held, and is written before any later one.
	Settle func(ctx context.Context, t *store.Ticket) error

	// Announce commits a batch together with the event sentinel:ID:WORD, if there are readers for
	// it. key is unique among the events of the sentinel.
	Announce func(id sentinels.ID, word, key string, data any, b store.Batch) *store.Ticket

	// AgentStarts bounds the runs that the triggers of the sentinels of an agent, or of all models, start in a
	// minute. Default 0: no bound.
	AgentStarts int

	// Observe is called with every outcome once it is durable, in order for each
	// sentinel. It must not block. Default: none.
	Observe func(trigger.Fired)
	// Log receives what an operator should know. Default discards.
	Log *slog.Logger
}

// Runs starts and stops runs.
type Runs interface {
	// Start starts a run without waiting for its commit, whose ticket it returns:
	// the first record of the run and s.Puts are one commit. If a run was started
	// with s.Key before, nothing is started, the ticket is nil and the id is that of
	// the earlier run.
	Start(s Start) (sentinels.RunID, *store.Ticket, error)
	// Stop stops a run and returns when its end is durable. A run that has ended
	// is the error conflict, one that is not in the store not_found.
	Stop(ctx context.Context, id sentinels.RunID) error
	// Undecided returns what a run of a trigger waits for a decision about, only because its
	// definition does not say what happens to a call that was interrupted; "" for any other run.
	Undecided(id sentinels.RunID) (call string)
	// EndUndecided ends an undecided run as failed and returns when its end is durable. It does
	// nothing, and reports false, for any other.
	EndUndecided(ctx context.Context, id sentinels.RunID) (bool, error)
	// Ran reports whether a run of a sentinel, no child run, began in a time; with completed,
	// whether it completed in that time too. Otherwise newest is the newest that began then, ""
	// for none, and how it stands.
	Ran(id sentinels.ID, from, to time.Time, completed bool) (found bool, newest sentinels.RunID, status sentinels.Status, err error)
	// Unfinished returns the runs in the store that have not ended.
	Unfinished() ([]sentinels.RunID, error)
	// Run describes a run, or returns not_found.
	Run(id sentinels.RunID) (Run, error)
}

// Start describes how a firing starts a run.
type Start struct {
	ID         sentinels.RunID
	Definition *sentinels.Definition
	Revision   int
	Origin     string           // of the revision
	Event      *sentinels.Event // nil for none
	Trigger    string           // its name
	Key        string           // unique in the store; "" for none
	Puts       []store.Put      // in the commit of the run's first record
}

// Run is what the overlap policy needs of a run.
type Run struct {
	Sentinel sentinels.ID
	Child    bool // a step of another run started it, so it is part of that one
	Status   sentinels.Status
	Chain    eventlog.Chain // that an event of it would have; empty if the run has ended
}

// Definitions reads the newest revisions of definitions.
type Definitions interface {
	// Newest returns the newest revision of a definition; found is false if it was
	// deleted or never saved.
	Newest(id sentinels.ID) (r Revision, found bool, err error)
	// Stored reports whether a definition is stored; one that cannot be read is.
	Stored(id sentinels.ID) bool
	// All returns the newest revision of every definition that is not deleted, by
	// id. With an error about some it returns the others.
	All() ([]Revision, error)
}

// Revision is one revision of a definition. Decode may be called more than once;
// all callers share its result and must not change it.
type Revision struct {
	ID     sentinels.ID
	Number int
	Origin string         // the file that it is from, "" for none
	Within []string       // the commands that its runs may call, nil for no bound
	By     string         // the agent or model that its runs count for, "" for a person
	Chain  eventlog.Chain // of the run that saved it, empty for none
	Decode func() (*sentinels.Definition, error)
}

// EventLog is the log of all events.
type EventLog interface {
	// Position returns the position of the newest event of the log that has those of a
	// pattern.
	Position(pattern string) uint64
	// Await returns the first durable event behind position after that matches
	// pattern. It waits for one until ctx ends, and then returns the cause of ctx
	// together with how far it has read.
	Await(ctx context.Context, pattern string, after uint64) (Sighting, error)
	// Quarter returns a quarter of the number of events that the log of a pattern can
	// hold now.
	Quarter(pattern string) uint64
}

// Sighting is the result of waiting for an event.
type Sighting struct {
	Event    sentinels.Event
	Position uint64 // 0 if none came
	Lost     int    // events that were removed from the log before they were read
	Through  uint64 // the log has no match up to here; set if none came
}
