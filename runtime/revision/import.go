package revision

import "github.com/sentinel-runtime/sentinel/sentinels"

// An Incoming definition comes from another store.
type Incoming struct {
	// Definition is the newest one; it must come from [runtime.Runtime.Decode].
	Definition *sentinels.Definition
	// History are its revisions, the oldest first; the last one holds
	// Definition. It becomes the history here if the id was never used here:
	// numbers, times, authors and notes are kept, origins are not, for they are
	// paths of another machine. Default: Definition is a revision of its own.
	History []Stored
	// Within bounds the runs of Definition, as in [Stored]. Default nil: no bound.
	Within []string
	// Expect is the revision that the store has, as in [SaveOptions].
	Expect int
}

// Imported is the result of an [Incoming] definition: the newest revision that the
// store has now.
type Imported struct {
	Stored
	Changed   bool // there is a new revision
	Revisions int  // how many were added: 0 if the store had it already, more than 1 only with its history
}
