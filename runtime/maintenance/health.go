package maintenance

import "time"

// Health reports whether the engine can store what happens.
type Health struct {
	OK       bool      `json:"ok"`
	ReadOnly bool      `json:"readOnly"`         // nothing new starts, see [runtime.Runtime.Health]
	Reason   string    `json:"reason,omitempty"` // for people; empty when OK
	Hint     string    `json:"hint,omitempty"`   // what the operator can do about it
	Since    time.Time `json:"since"`            // when OK or ReadOnly last changed

	FreeBytes  int64 `json:"freeBytes"`  // on the disk of the state folder; -1 if unknown
	LowBytes   int64 `json:"lowBytes"`   // below which the engine is read-only; 0 if it ignores the free space
	StoreBytes int64 `json:"storeBytes"` // of the database file
	StoreFree  int64 `json:"storeFree"`  // of them unused; the file shrinks when it is opened
	Held       int   `json:"held"`       // batches that wait to be written

	Commits uint64 `json:"commits"` // transactions made durable since the engine was opened

	Snapshot time.Time `json:"snapshot,omitzero"` // when the newest one was taken
}
