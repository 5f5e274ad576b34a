package store

import (
	"sync"
	"time"
)

// Stats are exact counts since the store was opened. Batches, Records, Puts,
// Trims and Bytes count committed batches only. Writes of Open and Close are
// not counted. Queue and file sizes are current values.
type Stats struct {
	Commits uint64 // durable transactions
	Batches uint64 // batches in them
	Records uint64 // journal records in them
	Puts    uint64 // pairs set or deleted
	Trims   uint64
	Bytes   uint64 // payload: records, keys, values
	Refused uint64 // batches refused by a check, for their sequence number or as invalid
	Retries uint64 // failed commits

	Blobs     uint64 // blobs written, without those that existed
	BlobBytes uint64

	Queued      int           // batches queued now, including those of the commit under way
	QueuedBytes int64         // their payload
	LastCommit  time.Duration // duration of the newest commit, including the sync

	FileBytes int64 // size of the database file; 0 in memory
	FreeBytes int64 // bytes of the file in unused pages; the file does not shrink by them
}

// counters is a Stats with a lock. The writer changes it once per commit.
type counters struct {
	mu sync.Mutex
	s  Stats
}

func (c *counters) change(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counters) read() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}
