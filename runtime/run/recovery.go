package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Recovery says what became of the runs that the last process left behind.
type Recovery struct {
	Resumed     int           `json:"resumed"`               // taken over, with those counted below
	Waiting     int           `json:"waiting"`               // of them: for a person
	Paused      int           `json:"paused"`                // of them: stay so
	InDoubt     []Doubt       `json:"inDoubt,omitempty"`     // calls that were cut off
	Quarantined []Quarantine  `json:"quarantined,omitempty"` // runs that are held because a step was executing at too many crashes
	Failed      []Unrestored  `json:"failed,omitempty"`      // stay as they are
	Took        time.Duration `json:"-"`
	Millis      float64       `json:"durationMs"`
}

// A Doubt is a call that was under way when the last process ended, and what is
// done about it: retry, fail, or ask a person.
type Doubt struct {
	Run      sentinels.RunID     `json:"run"`
	Sentinel sentinels.ID        `json:"sentinel"`
	Call     string              `json:"call"` // as in [PendingDecision]
	Step     string              `json:"step"` // its address
	What     string              `json:"what"`
	Choice   sentinels.Interrupt `json:"choice"`
}

// A Quarantine is a run whose step was executing at too many crashes.
type Quarantine struct {
	Run      sentinels.RunID `json:"run"`
	Sentinel sentinels.ID    `json:"sentinel"`
	Step     string          `json:"step"` // its execution path
	Crashes  int             `json:"crashes"`
}

// An Unrestored run cannot be taken over. It stays as its journal has it.
type Unrestored struct {
	Run      sentinels.RunID `json:"run"`
	Sentinel sentinels.ID    `json:"sentinel,omitempty"`
	Error    *abi.Error      `json:"error"`
}
