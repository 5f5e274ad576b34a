package maintenance

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A RepairReport is the result of [runtime.Repair]: what was done, what came from
// where, and what is missing.
type RepairReport struct {
	Sound  bool   `json:"sound,omitempty"`  // the store is not damaged, and nothing was done
	DryRun bool   `json:"dryRun,omitempty"` // the store was not replaced
	Store  string `json:"store"`
	Kept   string `json:"kept,omitempty"` // path of the store that was replaced

	Damaged  int       `json:"damaged"`            // places
	Places   []string  `json:"places,omitempty"`   // the first of them
	Snapshot *Snapshot `json:"snapshot,omitempty"` // the source of what was lost
	Unusable []string  `json:"unusable,omitempty"` // snapshots that are damaged too, each with the reason

	Buckets []RepairedBucket `json:"buckets"`
	Runs    RepairedRuns     `json:"runs"`
	// Revisions of definitions that are in neither, as "id/number".
	Revisions []string `json:"revisionsMissing,omitempty"`
	// Events is how many positions between the oldest and the newest event of the
	// log are empty.
	Events int `json:"eventsMissing,omitempty"`
	// Blobs are digests of large values that a record names and that do not
	// exist.
	Blobs []string      `json:"blobsMissing,omitempty"`
	Took  time.Duration `json:"took"`
}

// RepairedBucket reports where the pairs of a bucket came from.
type RepairedBucket struct {
	Name         string `json:"name"`
	Salvaged     int    `json:"salvaged"`
	FromSnapshot int    `json:"fromSnapshot,omitempty"` // as they were when it was taken; some may have been changed or deleted since
	Unreadable   int    `json:"unreadable,omitempty"`   // values whose checksum does not match
	Whole        bool   `json:"whole"`                  // nothing of it was lost
}

// RepairedRuns names the runs that have changed. All others are whole.
type RepairedRuns struct {
	Whole        int               `json:"whole"`
	FromSnapshot []sentinels.RunID `json:"fromSnapshot,omitempty"` // journal as the snapshot has it
	Cut          []sentinels.RunID `json:"cut,omitempty"`          // journal that ends early
	Rebuilt      []sentinels.RunID `json:"rebuilt,omitempty"`      // summary made again from the journal
	Lost         []sentinels.RunID `json:"lost,omitempty"`         // summary without a journal to continue from: failed
	Paused       []sentinels.RunID `json:"paused,omitempty"`       // records may be missing, so a person has to resume it
}
