package runtime

import "time"

// Stats are figures of a runtime and its store. Counts of the
// store are exact and begin at Open.
type Stats struct {
	Runs      int `json:"runs"`      // that this process executes
	Executing int `json:"executing"` // of them: a guest or an effect runs now
	Resident  int `json:"resident"`  // guests in memory that wait

	Commits    uint64        `json:"commits"`
	Records    uint64        `json:"records"`
	Queued     int           `json:"queued"` // batches that wait for their commit
	LastCommit time.Duration `json:"-"`
	StoreBytes int64         `json:"storeBytes"` // of the database file; 0 in memory
	FreeBytes  int64         `json:"freeBytes"`  // of them: hold nothing, and are used again
	Blobs      uint64        `json:"blobs"`      // written
	BlobBytes  uint64        `json:"blobBytes"`
}

// Stats returns the runtime's figures. It is cheap: a dashboard may ask every
// second.
func (rt *Runtime) Stats() Stats {
	s := rt.db.Stats()
	runs, executing := rt.exec.Counts()
	return Stats{
		Runs: runs, Executing: executing, Resident: rt.exec.Resident(),
		Commits: s.Commits, Records: s.Records, Queued: s.Queued, LastCommit: s.LastCommit,
		StoreBytes: s.FileBytes, FreeBytes: s.FreeBytes, Blobs: s.Blobs, BlobBytes: s.BlobBytes,
	}
}
