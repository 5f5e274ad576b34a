package runtime

import "time"

// Stats are figures of a runtime and its store. Counts of the
// store are exact and begin at Open.
type Stats struct {
	Runs      int `json:"runs"`      // active runs
	Executing int `json:"executing"` // active runs that execute a guest or an effect now
	Resident  int `json:"resident"`  // waiting guests in memory

	Commits    uint64        `json:"commits"`
	Records    uint64        `json:"records"`
	Queued     int           `json:"queued"` // batches that wait for their commit
	LastCommit time.Duration `json:"-"`
	StoreBytes int64         `json:"storeBytes"` // size of the database file; 0 in memory
	FreeBytes  int64         `json:"freeBytes"`  // unused part of StoreBytes, available for new data
	Blobs      uint64        `json:"blobs"`      // blobs written
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
