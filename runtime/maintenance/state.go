package maintenance

import "time"

// A Snapshot is a store snapshot: a copy of the store after one commit, in the
// folder snapshots of the state folder.
type Snapshot struct {
	Path  string    `json:"path"`
	Taken time.Time `json:"taken"`
	Why   string    `json:"why"`   // "hourly", or the operation that it precedes
	Store string    `json:"store"` // identity of the store; a folder may have had another store before
	Bytes int64     `json:"bytes"`
}

// StateInfo describes a state folder as seen from outside.
type StateInfo struct {
	Store  string    // the database file
	Bytes  int64     // of it; -1 if it does not exist
	Held   bool      // a process has it open
	Holder int       // that process, 0 if unknown
	Since  time.Time // since when, zero if unknown
	Closed bool      // its last owner closed it; false while it is held

	FreeBytes, TotalBytes int64 // of the disk; -1 if unknown
	LowBytes              int64 // below which an engine with default options is read-only
}

// A Migration is the change of a store to the format of this program, which
// [runtime.Open] makes.
type Migration struct {
	From, To int    // formats
	Snapshot string // path of the store snapshot from before
}

// Compacted is the result of [runtime.CompactStore], in bytes of the file.
type Compacted struct{ Before, After int64 }
