package run

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ProgressKind is the kind of a [Progress].
type ProgressKind string

// The kinds of progress. Text, output and log are reported at once and are not durable.
const (
	OnRunStart       ProgressKind = "run.start"
	OnIterationStart ProgressKind = "iteration.start"
	OnStepStart      ProgressKind = "step.start"
	OnCallStart      ProgressKind = "call.start"
	OnCallEnd        ProgressKind = "call.end"
	OnRetry          ProgressKind = "retry"
	OnStepEnd        ProgressKind = "step.end"
	OnIterationEnd   ProgressKind = "iteration.end"
	OnStatus         ProgressKind = "status"
	OnEdit           ProgressKind = "edit" // the definition of this run was edited, for its next iterations
	OnRunEnd         ProgressKind = "run.end"
	OnLog            ProgressKind = "log"
	OnText           ProgressKind = "text" // text of a model, as it arrives
	// OnOutput is what a command prints, several times a second and of each time the end; a line
	// says what is left out. Offset is the number of bytes that it has printed before. All of it
	// is in the output of the step.
	OnOutput ProgressKind = "output"
	// OnItems is how many items of a loop that collects results have ended: at its begin, at its end, and
	// between them at most a hundred times.
	OnItems ProgressKind = "items"
)

// Items are the items of a loop.
type Items struct {
	Ended int64 `json:"ended"`
	Total int64 `json:"total"`
}

// Partial reports whether progress of the kind is a piece of a text, of which the whole is in the output
// of the step: it is kept nowhere else, and may be left out.
func (k ProgressKind) Partial() bool { return k == OnText || k == OnOutput }

// Progress is an event of a run. Fields that do not apply are empty. Its JSON form is a
// line of "-o jsonl".
type Progress struct {
	Event     ProgressKind       `json:"event"`
	Run       sentinels.RunID    `json:"run"`
	Root      sentinels.RunID    `json:"root,omitempty"`
	Sentinel  sentinels.ID       `json:"sentinel,omitempty"`
	Unstored  bool               `json:"-"` // the run is none of the stored sentinel with this id, see [Info.OfStored]
	Time      time.Time          `json:"time"`
	Iteration int                `json:"iteration,omitempty"`
	Revision  int                `json:"revision,omitempty"`
	Edit      int                `json:"edit,omitempty"` // number of the run's own edit
	Address   string             `json:"address,omitempty"`
	Path      string             `json:"path,omitempty"`
	Step      string             `json:"step,omitempty"` // the step's name or id
	Type      sentinels.StepType `json:"type,omitempty"`
	Attempt   int                `json:"attempt,omitempty"`
	Function  string             `json:"function,omitempty"` // host function of a call
	Label     string             `json:"label,omitempty"`    // command, event or model of a call
	ByModel   bool               `json:"byModel,omitempty"`  // a model requested the call
	Params    json.RawMessage    `json:"params,omitempty"`   // parameters of a command that a model called, up to 4 KiB
	Duration  time.Duration      `json:"-"`                  // of what has ended; before the next attempt of a retry
	Millis    float64            `json:"durationMs,omitempty"`
	Output    json.RawMessage    `json:"output,omitempty"`  // of a step; of a command that a model called, up to 4 KiB or its short fields
	Skipped   string             `json:"skipped,omitempty"` // "condition" or "error"
	Error     *abi.Error         `json:"error,omitempty"`
	RetryAt   time.Time          `json:"retryAt,omitzero"`
	Category  string             `json:"category,omitempty"`
	Status    sentinels.Status   `json:"status,omitempty"`
	Reason    string             `json:"reason,omitempty"`   // the limit that a run ended or paused at
	Decision  *PendingDecision   `json:"decision,omitempty"` // with status waiting: the pending decision
	Usage     *sentinels.Usage   `json:"usage,omitempty"`
	Level     string             `json:"level,omitempty"`
	Message   string             `json:"message,omitempty"`
	Offset    int64              `json:"offset,omitempty"` // of output
	Items     *Items             `json:"items,omitempty"`  // of items
}
