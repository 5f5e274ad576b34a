package run

import (
	"cmp"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A RetryWait is a step that failed and waits for its next attempt.
type RetryWait struct {
	Step    string     `json:"step"`    // address of the step
	Attempt int        `json:"attempt"` // number of the attempt that failed, from 1
	At      time.Time  `json:"at"`      // when the next attempt begins
	Error   *abi.Error `json:"error,omitempty"`
}

// A QueueWait is a step, or a child run, that waits because as much executes as a limit allows
// at once.
type QueueWait struct {
	Step   string    `json:"step,omitempty"` // address of the step; empty: the run itself waits
	Reason string    `json:"reason"`         // what it waits behind, with the limit
	Since  time.Time `json:"since"`
}

// Info is the summary of a run as lists and status show it.
type Info struct {
	ID         sentinels.RunID  `json:"id"`
	Run        sentinels.RunID  `json:"run,omitempty"` // ID, under the name that it has in results and events
	Sentinel   sentinels.ID     `json:"sentinel"`
	Name       string           `json:"name"`
	Status     sentinels.Status `json:"status"`
	Reason     string           `json:"reason,omitempty"`     // why it is paused; of a run that ended at a limit, see [TimedOut] and [Failed]
	Limit      string           `json:"limit,omitempty"`      // the limit that it paused or ended at
	PausedWith sentinels.RunID  `json:"pausedWith,omitempty"` // the run whose whole tree was paused
	Step       string           `json:"step,omitempty"`       // address of the step that failed
	Error      *abi.Error       `json:"error,omitempty"`
	Finally    *abi.Error       `json:"finally,omitempty"` // error of onFailure or finally, which changes nothing else
	Iteration  int              `json:"iteration"`
	Revision   int              `json:"revision,omitempty"`
	Edit       int              `json:"edit,omitempty"` // number of the run's newest own edit; 0 if it follows the sentinel
	Hash       string           `json:"hash"`
	Workspace  string           `json:"workspace"`
	As         string           `json:"as,omitempty"`         // see StartOptions
	By         string           `json:"by,omitempty"`         // agent or model whose share of what is kept it counts for; empty for a person
	StartBytes int64            `json:"startBytes,omitempty"` // of a run with By: bytes of the variables, inputs and event that it was started with
	Parent     sentinels.RunID  `json:"parent,omitempty"`
	Root       sentinels.RunID  `json:"root"`

	// Origin of a fork: the other run, the iteration that the fork continues, and the
	// address of the first step that it executed. RetryIteration is 0 and RetryFrom is
	// empty if it began from the start.
	RetryOf        sentinels.RunID `json:"retryOf,omitempty"`
	RetryIteration int             `json:"retryIteration,omitempty"`
	RetryFrom      string          `json:"retryFrom,omitempty"`

	Usage     sentinels.Usage   `json:"usage"`
	Elapsed   int64             `json:"elapsedMs"` // active time in milliseconds
	CreatedAt time.Time         `json:"createdAt"`
	StartedAt int64             `json:"startedAt,omitempty"` // CreatedAt in milliseconds since 1970
	UpdatedAt time.Time         `json:"updatedAt"`
	EndedAt   time.Time         `json:"endedAt,omitzero"`
	Decisions []PendingDecision `json:"decisions,omitempty"` // what a person has to decide
	// What the end of a run leaves of those who kept it from going on, so that a fork of it can be left to them: the
	// user who stopped it or decided that an interrupted call or a quarantined step fails; the user who had paused it;
	// and the kind of the question about such a call or step that was open.
	EndedBy       string       `json:"endedBy,omitempty"`
	EndedPause    string       `json:"endedPause,omitempty"`
	EndedQuestion DecisionKind `json:"endedQuestion,omitempty"`
	// ApprovedBy is who approved a step of the run last, or of the run that it is a fork of, before the place of the
	// fork; empty if there is no approval.
	ApprovedBy string `json:"approvedBy,omitempty"`
	// GivenBy are the agents and models that gave the run, after its start, steps or an event that no person had accepted:
	// by an edit, by a revision that an iteration used, or to a step that waited for the event or an iteration that handled it.
	GivenBy []string `json:"givenBy,omitempty"`

	Retries  []RetryWait `json:"retries,omitempty"`  // steps of an active run that wait for their next attempt
	Queued   []QueueWait `json:"queued,omitempty"`   // what waits at a limit of what may execute at once
	Snapshot uint64      `json:"snapshot,omitempty"` // number of the record that ended the last iteration
	Live     bool        `json:"live"`               // a process executes it now
	Warnings []string    `json:"warnings,omitempty"` // what is probably wrong with the definition, each once

	Crashes map[string]StepCrashes `json:"crashes,omitempty"` // crashes of the host, by execution path of the steps that were executing
	Turn    string                 `json:"turn,omitempty"`    // execution path of a suspected step that executes now, see Limits of package runtime
}

// OfStored reports whether the run counts as one of the stored sentinel with its id. Runs for an agent or models of
// a definition that is not stored do not: its author chose the id. Those of a person are drafts of the next revision.
func (i Info) OfStored() bool {
	return i.Revision > 0 || i.By == "" || strings.Contains(string(i.Sentinel), "@")
}

// PausedBy returns the user that paused the run, see [PauseOptions]; "" for a run that is not paused, or that a limit paused.
func (i Info) PausedBy() string {
	by, ok := strings.CutPrefix(i.Reason, pausedBy)
	if !ok || i.Status != sentinels.StatusPaused {
		return ""
	}
	return by
}

// CutOff notes the pause and the open questions that the end of the run cuts off.
func (i *Info) CutOff(pending []PendingDecision) {
	i.EndedPause = cmp.Or(i.PausedBy(), i.EndedPause)
	for _, q := range pending {
		if q.Kind != DecisionApproval {
			i.EndedQuestion = q.Kind
		}
	}
}

// PauseReason returns the reason of a run that a user pauses.
func PauseReason(by string) string { return pausedBy + by }

// pausedBy begins the reason of a run that a user paused.
const pausedBy = "by "

// StepCrashes counts the crashes of the host at which a step was executing.
type StepCrashes struct {
	Count int `json:"count"`
	Alone int `json:"alone,omitempty"` // number of these crashes at which no other step can have been the cause
}
