package run

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// EditOptions configure an edit of one run.
type EditOptions struct {
	// By is the user who makes the edit. Default empty: not known.
	By string
	// Note is the reason for the edit. Default empty.
	Note string
	// Within is as in [StartOptions]: commands that the author of the edit may call. It adds
	// to the bound that the run has. Default nil.
	Within []string
}

// A Version is the definition that a run uses.
type Version struct {
	Definition *sentinels.Definition
	Revision   int      // stored revision, 0 if it is not stored; of an edit the one that was edited
	Edit       int      // number of the run's own edit, 0 if it is not one
	Within     []string // commands that the run may call, as in [StartOptions]; nil for all
}

// An Edit is an edit of one run.
type Edit struct {
	Run        sentinels.RunID       `json:"run"`
	Sentinel   sentinels.ID          `json:"sentinel"`
	Edit       int                   `json:"edit"`               // number of the edit in its run, from 1
	Revision   int                   `json:"revision,omitempty"` // stored revision that was edited, 0 if it was not stored
	Hash       string                `json:"hash"`
	Time       time.Time             `json:"time"`
	Definition *sentinels.Definition `json:"-"`
	// Kept are the limits that the edit raises and that stay as they were, because an agent or a model has made it
	// in a run for a person.
	Kept []string `json:"-"`
}
