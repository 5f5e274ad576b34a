package store

import (
	"sync"
	"time"
)

// Stats are exact counts since the store was opened. Only committed batches
// count in Batches, Records, Puts, Trims and Bytes. What opening and closing
// write for themselves is not counted. The sizes of the file are as they are now.
type Stats struct {
	Commits uint64 // transactions made durable
	Batches uint64 // batches in them
	Records uint64 // journal records in them
	Puts    uint64 // pairs set or deleted
	Trims   uint64
	Bytes   uint64 // payload: records, keys, values
	Refused uint64 // batches that failed a check, a sequence or were invalid
	Retries uint64 // failed commits

	Blobs     uint64 // blobs written, not those that were there
	BlobBytes uint64

	Queued      int           // batches that wait now, those being committed included
	QueuedBytes int64         // their payload
	LastCommit  time.Duration // how long the newest commit took, sync included

	FileBytes int64 // of the database file; 0 in memory
	FreeBytes int64 // of them in pages that hold nothing; the file gives none back
}

// counters is Stats behind a lock. The writer adds once a commit.
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
