package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Totals are the totals of the kept runs of one sentinel, including child runs.
type Totals struct {
	Runs    int           // number of runs
	Over    int           // number of finished runs
	Elapsed time.Duration // active time of the finished runs, in whole milliseconds

	Newest   sentinels.RunID  // newest run; empty if there is none
	NewestAt time.Time        // when the newest run was started
	Status   sentinels.Status // status of the newest run; empty if it is finished
}

// AverageDuration returns the mean active time of the finished runs; false without any.
func (t Totals) AverageDuration() (time.Duration, bool) {
	if t.Over == 0 {
		return 0, false
	}
	return t.Elapsed / time.Duration(t.Over), true
}
