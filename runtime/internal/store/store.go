package store

import "math"

// Store is what the engine needs of a store. See storetest for its clauses.
type Store interface {
	// Enqueue puts b behind everything enqueued before and returns at once.
	// The store owns the slices of b until the ticket is done: the caller must
	// not change them before.
	Enqueue(b Batch) *Ticket

	// Journal calls fn with the committed records of a run in order, from
	// sequence number from (0 and 1 both mean the first). A record is valid
	// only during its call. An error of fn ends the walk and is returned.
	// Records that are committed or trimmed during the walk may be seen or not.
	Journal(run string, from uint64, fn func(seq uint64, record []byte) error) error

	// LastSeq returns the sequence number of the newest record of a run.
	LastSeq(run string) (seq uint64, found bool, err error)

	// Get returns a copy of a committed value.
	Get(bucket string, key []byte) (value []byte, found bool, err error)

	// Scan calls fn with the pairs of a bucket whose key begins with prefix,
	// in key order, or backwards with reverse, beginning behind the key after
	// (nil: at the end where the walk begins). It stops when fn returns false.
	// Key and value are valid only during the call. Pairs written during the
	// scan may be seen or not.
	Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error

	// PutBlob keeps data under its SHA-256 in hexadecimal. When it returns the
	// blob is durable. Putting the same data again changes nothing.
	PutBlob(data []byte) (digest string, err error)

	// Blob returns the data of a digest after checking it, [ErrNotFound] if
	// there is none, [ErrCorrupt] if it is not what was put.
	Blob(digest string) ([]byte, error)

	// Stats returns exact counts since the store was opened.
	Stats() Stats

	// Close commits what is enqueued, ends the writer and returns after every
	// callback has run; it must not be called from a callback. Closing twice
	// is legal. Afterwards everything is [ErrClosed].
	Close() error
}

// A Batch is one atomic change. Its checks run first, all on the state before
// the batch; then appends, puts and trims are done, in that order.
type Batch struct {
	Appends []Append
	Puts    []Put
	Trims   []Trim

	// Lazy says that nobody waits: the batch may be held until another one
	// that is not lazy comes or 50 ms have passed. Order is kept all the same.
	Lazy bool
}

// An Append adds a record to a run's journal. Seq must be one more than the
// run's newest, 1 for the first, else the batch fails with [ErrSequence].
type Append struct {
	Run    string // UUID text
	Seq    uint64
	Record []byte
}

// A Put sets or deletes one pair. The empty key and the bucket names "journal"
// and "store" are refused with [ErrInvalid]. Values over 64 KB belong in blobs.
type Put struct {
	Bucket string
	Key    []byte
	Value  []byte
	Delete bool  // remove the pair, whether it exists or not
	Check  Check // nil for none
}

// Check is a precondition of a Put. It runs in the writer's transaction, sees
// all earlier batches and must neither block nor call the store; current is
// valid only during the call. A non-nil error fails the whole batch with that
// error, and only that batch.
type Check func(current []byte, exists bool) error

// A Trim deletes the journal records From..To of a run, both inclusive. With
// From 0 or 1 and To [All] nothing of the run is left. The next sequence
// number is always one more than the newest record that is left.
type Trim struct {
	Run      string
	From, To uint64
}

// All as the end of a Trim means the run's newest record.
const All = uint64(math.MaxUint64)
