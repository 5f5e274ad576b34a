package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// EditOptions say what an edit of one run is.
type EditOptions struct {
	// ExpectHash is the hash of the definition that the edit was made on; the
	// error conflict names the one that is in force. Default: any.
	ExpectHash string
	// By says who makes the edit. Default empty: not known.
	By string
	// Note says why. Default empty.
	Note string
}

// An Edit is an edit of one run.
type Edit struct {
	Run        sentinels.RunID       `json:"run"`
	Sentinel   sentinels.ID          `json:"sentinel"`
	Edit       int                   `json:"edit"`               // counts the run's edits from 1
	Revision   int                   `json:"revision,omitempty"` // of the stored sentinel that it was made on, 0 for none
	Hash       string                `json:"hash"`
	Time       time.Time             `json:"time"`
	Definition *sentinels.Definition `json:"-"`
}
