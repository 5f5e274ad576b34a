package store

import "math"

// Store is the storage that the engine needs. Package storetest has its
// clauses.
type Store interface {
	// Enqueue appends b to the queue and returns at once. The store owns the
	// slices of b until the ticket is done; the caller must not change them
	// before.
	Enqueue(b Batch) *Ticket

	// Journal calls fn with the committed records of a run in order, beginning
	// with sequence number from; 0 and 1 both mean the first. A record is valid
	// only during the call. If fn returns an error, Journal stops and returns
	// it. Records that are committed or trimmed meanwhile may be seen or not.
	Journal(run string, from uint64, fn func(seq uint64, record []byte) error) error

	// LastSeq returns the sequence number of the newest record of a run.
	LastSeq(run string) (seq uint64, found bool, err error)

	// Get returns a copy of a committed value.
	Get(bucket string, key []byte) (value []byte, found bool, err error)

	// Scan calls fn with the pairs of a bucket whose key begins with prefix, in
	// key order, or in reverse order if reverse is set. It begins with the
	// first key that follows after in that order; a nil after means the first
	// key of all. Scan stops when fn returns false. Key and value are valid
	// only during the call. Pairs that are written meanwhile may be seen or
	// not.
	Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error

	// PutBlob stores data under its SHA-256 in hexadecimal. The blob is durable
	// when PutBlob returns. Putting the same data again changes nothing.
	PutBlob(data []byte) (digest string, err error)

	// Blob returns the data of a digest after checking it against the digest.
	// The error is [ErrNotFound] if no blob has the digest, and [ErrCorrupt] if
	// the data does not match.
	Blob(digest string) ([]byte, error)

	// Stats returns exact counts since the store was opened.
	Stats() Stats

	// Close commits all queued batches, stops the writer and returns after the
	// last callback. It must not be called from a callback. Closing twice is
	// allowed. After Close every method returns [ErrClosed].
	Close() error
}

// A Batch is one atomic change. The checks of its puts run first, on the state
// before the batch. Then the appends, puts and trims are applied, in that
// order.
type Batch struct {
	Appends []Append
	Puts    []Put
	Trims   []Trim

	// Lazy marks a batch that no caller waits for. It may be delayed until a
	// batch that is not lazy is enqueued or 50 ms have passed. The order of
	// batches is kept.
	Lazy bool
}

// An Append adds a record to a run's journal. Seq must be one more than the
// run's newest sequence number, 1 for the first record. Otherwise the batch
// fails with [ErrSequence].
type Append struct {
	Run    string // UUID text
	Seq    uint64
	Record []byte
}

// A Put sets or deletes one pair. An empty key and the bucket names "journal"
// and "store" are refused with [ErrInvalid]. Values over 64 KB belong in blobs.
type Put struct {
	Bucket string
	Key    []byte
	Value  []byte
	Delete bool  // remove the pair, whether it exists or not
	Check  Check // optional
}

// Check is a precondition of a Put. It runs in the writer's transaction and
// sees all earlier batches. It must not block and must not call the store.
// current is valid only during the call. If Check returns an error, its batch
// fails with that error, and no other batch does.
type Check func(current []byte, exists bool) error

// A Trim deletes the journal records From to To of a run, both inclusive. From
// 0 or 1 and To [All] delete the whole journal. The next sequence number is
// always one more than the newest record that is left.
type Trim struct {
	Run      string
	From, To uint64
}

// All, used as the end of a Trim, means the run's newest record.
const All = uint64(math.MaxUint64)
