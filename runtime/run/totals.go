package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Totals are what the kept runs of one sentinel come to, its child runs included.
type Totals struct {
	Runs    int           // all
	Over    int           // of those
	Elapsed time.Duration // of those that are over, without pauses, in whole milliseconds

	Newest   sentinels.RunID  // empty without any
	NewestAt time.Time        // its start
	Status   sentinels.Status // of the newest one as it is now; empty once that is over
}
