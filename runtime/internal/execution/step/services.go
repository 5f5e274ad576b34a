package step

import (
	"log/slog"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/capacity"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/redact"
	"github.com/sentinel-runtime/sentinel/runtime/internal/values"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Services are what the steps of all runs share.
type Services struct {
	Limits *run.Limits

	// Services of the host. Host calls that need one that is nil fail with the code
	// unavailable.
	Commands   external.Commands
	Models     external.Models
	Executions external.Executions
	HTTP       external.HTTP
	Folders    external.Folders

	Values      *values.Store
	Redact      redact.Redactor
	Conditions  *cond.Evaluator
	Events      *eventlog.Log
	RunEvents   *eventlog.Log      // events of runs
	Expected    *eventlog.Expected // what readers of RunEvents may wait for
	Documents   *document.Store
	Definitions Definitions
	Calendar    *clock.Calendar
	Classify    retry.Classifier // knows errors before the built-in table; may be nil
	Blocked     func() bool      // reports that the runtime is read-only and no step starts
	Log         *slog.Logger

	Residents *capacity.Residents // waiting guests in memory
	Effects   capacity.Effects    // calls under way that a crash would leave in doubt
	Turns     capacity.Turns      // turns of the steps that are suspected of crashing the host

	shapes shapes
}

// Definitions decode and read the definitions of child runs.
type Definitions interface {
	// Decode reads and checks a definition that is the value of a variable.
	Decode(src []byte, file string) (*sentinels.Definition, sentinels.Problems)
	// DecodeStored reads a definition that was checked before, and caches it: it must not be
	// changed.
	DecodeStored(text []byte, id sentinels.ID) (def *sentinels.Definition, hash string, err error)
	// Stored reports whether a definition is stored; one that cannot be read is.
	Stored(id sentinels.ID) bool
	// Head returns the newest revision of a definition, also one that deletes it; revision 0 if the
	// id was never used.
	Head(id sentinels.ID) (revision.Stored, error)
	// Get returns the newest revision of a stored definition, or not_found.
	Get(id sentinels.ID) (revision.Stored, error)
	Decoded(s revision.Stored) (*sentinels.Definition, error)
}

// Takes reports whether a reader of a pattern takes an event, see [sentinels.TakesEvent].
func (s *Services) Takes(pattern string, source sentinels.EventSource, e *sentinels.Event) bool {
	return sentinels.TakesEvent(pattern, source, e, s.Definitions.Stored)
}

// EventLog returns the log of the events that match a pattern, or have a name.
func (s *Services) EventLog(pattern string) *eventlog.Log {
	if sentinels.IsRunEvent(pattern) {
		return s.RunEvents
	}
	return s.Events
}

// CommandInfo returns the description of a command, with only its name if it is
// unknown.
func (s *Services) CommandInfo(name string) external.CommandInfo {
	if s.Commands != nil {
		if info, ok := s.Commands.Lookup(name); ok {
			return info
		}
	}
	return external.CommandInfo{Name: name}
}
