package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Recovery reports on the runs that the last process left unfinished.
type Recovery struct {
	Resumed     int           `json:"resumed"`               // runs that were taken over, including those of the next two fields
	Waiting     int           `json:"waiting"`               // runs that were taken over and wait for a decision
	Paused      int           `json:"paused"`                // runs that were taken over and stay paused
	InDoubt     []Doubt       `json:"inDoubt,omitempty"`     // calls that were interrupted
	Quarantined []Quarantine  `json:"quarantined,omitempty"` // runs with a quarantined step
	Failed      []Unrestored  `json:"failed,omitempty"`      // runs that cannot be taken over
	Took        time.Duration `json:"-"`
	Millis      float64       `json:"durationMs"`
}

// A Doubt is a call that was under way when the last process ended.
type Doubt struct {
	Run      sentinels.RunID `json:"run"`
	Sentinel sentinels.ID    `json:"sentinel"`
	Call     string          `json:"call"` // name of its pending decision, as in [PendingDecision]
	Step     string          `json:"step"` // address of the step
	What     string          `json:"what"`
	// Choice is what happens with the call: retry, skip, fail, or ask a person.
	Choice sentinels.Interrupt `json:"choice"`
}

// A Quarantine is a quarantined step, which was executing at several crashes.
type Quarantine struct {
	Run      sentinels.RunID `json:"run"`
	Sentinel sentinels.ID    `json:"sentinel"`
	Step     string          `json:"step"` // its execution path
	Crashes  int             `json:"crashes"`
}

// An Unrestored is a run that cannot be taken over. Its journal is not changed.
type Unrestored struct {
	Run      sentinels.RunID `json:"run"`
	Sentinel sentinels.ID    `json:"sentinel,omitempty"`
	Error    *abi.Error      `json:"error"`
}
