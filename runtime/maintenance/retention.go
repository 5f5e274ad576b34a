package maintenance

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Retention bounds what is kept of runs that have ended. A zero field bounds
// nothing.
type Retention struct {
	MaxAge   time.Duration // since a run's end
	MaxRuns  int           // of each sentinel
	MaxBytes int64         // of records and results in all; a blob counts for every run that uses it

	// Where MaxRuns or MaxBytes is reached, the agent, model or person with the most loses
	// the oldest. Persons lose none while they have at most half.

	// KeepFailed is how many times as long, and how many times as many, failures
	// are kept: runs that failed or reached a limit. With MaxBytes, a failure
	// is removed before another run that ended if it is more than so many times
	// as old. Values below 1 are 1. Default 3.
	KeepFailed float64
	// Removed is called with runs that were removed, so that the caller can
	// remove what it keeps of them. It may block; an error ends the pruning. If
	// the process ends before the call, the call is not repeated. Default nil.
	Removed func(ctx context.Context, runs []sentinels.RunID) error
}

// Pruned reports what a [runtime.Runtime.Prune] removed.
type Pruned struct {
	Runs      int           `json:"runs"`
	Records   int           `json:"records"`   // of their journals
	Bytes     int64         `json:"bytes"`     // of the records and results
	Keys      int           `json:"keys"`      // start keys
	Blobs     int           `json:"blobs"`     // blobs that no record names any more
	BlobBytes int64         `json:"blobBytes"` // their size
	Swept     bool          `json:"swept"`     // blobs were looked at: at most once a minute
	Kept      int           `json:"kept"`      // runs that are left, active ones included
	Took      time.Duration `json:"-"`
}
