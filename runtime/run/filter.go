package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Filter selects runs; empty fields select all. A filter by sentinel, by parent, or
// by statuses that are not final reads only what it returns, give or take a few; any
// other one reads run by run until it has enough.
type Filter struct {
	Sentinel sentinels.ID
	Status   sentinels.Status
	Statuses []sentinels.Status // any of them; Status is one more
	Parent   sentinels.RunID
	Root     sentinels.RunID
	Since    time.Time       // started then or later
	Before   sentinels.RunID // older than this one: the last of a page gives the next page
	Limit    int             // 0 is no limit
}

// Unfinished returns the statuses of runs that are not over.
func Unfinished() []sentinels.Status {
	return []sentinels.Status{sentinels.StatusRunning, sentinels.StatusPaused, sentinels.StatusWaiting, sentinels.StatusQuarantined}
}
