package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Filter selects runs; empty fields select all. A filter by sentinel, by parent, or by
// statuses that are not final reads about as many runs as it returns; any other one
// reads all runs until it has found enough.
type Filter struct {
	Sentinel sentinels.ID
	OfStored bool // only runs that count as runs of a stored sentinel, see [Info.OfStored]
	Status   sentinels.Status
	Statuses []sentinels.Status // runs with one of these statuses, or with Status
	Parent   sentinels.RunID
	Root     sentinels.RunID
	Since    time.Time       // runs that were started at this time or later
	Before   sentinels.RunID // runs that were started before this one; for the next page, the last run of a page
	Limit    int             // maximum number of runs; 0 is no limit
}

// Unfinished returns the statuses of runs that are not over.
func Unfinished() []sentinels.Status {
	return []sentinels.Status{sentinels.StatusRunning, sentinels.StatusQueued, sentinels.StatusPaused, sentinels.StatusWaiting, sentinels.StatusQuarantined}
}
