package store

import (
	"bytes"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// maxRuns bounds the writer's memory of newest records.
const maxRuns = 8192

// Keys of the store's own bucket.
var (
	commitKey = []byte("commit") // number of the newest commit
	madeKey   = []byte("made")   // when the file was made, seconds since 1970
)

// commit carries out the tickets in one bbolt transaction.
//
// Every commit writes its number. If writing the last page worked and its sync
// failed, bbolt reports an error although the file may show the new state; the
// number tells, and then the batches must not be applied a second time: the
// next transaction, even an empty one, makes them durable.
func (db *DB) commit(tickets []*Ticket) (written bool, err error) {
	btx, err := db.bolt.Begin(true)
	if err != nil {
		return false, err
	}
	defer btx.Rollback() //nolint:errcheck // a no-op after Commit; before it the error at hand counts
	defer func() {
		if err != nil {
			clear(db.last) // holds numbers that did not come to be
		}
	}()

	own := btx.Bucket([]byte(storeBucket))
	took := db.pending != 0 && readCommit(own) == db.pending
	if !took {
		if written, err = db.applyAll(btx, tickets); err != nil || !written {
			return false, err
		}
	}
	db.pending = db.commits + 1
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], db.pending)
	if err = own.Put(commitKey, number[:]); err != nil {
		return false, err
	}
	if err = btx.Commit(); err != nil {
		return false, err
	}
	if db.afterCommit != nil {
		if err = db.afterCommit(); err != nil {
			return false, err
		}
	}
	db.commits, db.pending = db.pending, 0
	return true, nil
}

// applyAll applies the tickets one after the other; any reports whether one of
// them took effect. A retry decides anew, because nothing of the failed try
// came to be.
func (db *DB) applyAll(btx *bolt.Tx, tickets []*Ticket) (any bool, err error) {
	to := boltTx{db: db, journal: btx.Bucket([]byte(journalBucket)), tx: btx}
	if len(db.last) > maxRuns {
		clear(db.last)
	}
	for _, t := range tickets {
		if t.invalid != nil {
			continue
		}
		t.verdict, err = apply(&to, &t.batch)
		if err != nil {
			return false, err
		}
		any = any || t.verdict == nil
	}
	return any, nil
}

func readCommit(b *bolt.Bucket) uint64 {
	if v := b.Get(commitKey); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// boltTx is [tx] on bbolt. bbolt copies keys, so the scratch key is enough;
// values stay the batch's until the commit.
type boltTx struct {
	db      *DB
	tx      *bolt.Tx
	journal *bolt.Bucket
	buckets []namedBucket // opened so far: a commit has few
}

type namedBucket struct {
	name   string
	bucket *bolt.Bucket // nil if it does not exist
}

func (t *boltTx) lastSeq(run runKey) (uint64, error) {
	if seq, ok := t.db.last[run]; ok {
		return seq, nil
	}
	seq := newest(t.journal.Cursor(), run)
	t.db.last[run] = seq
	return seq, nil
}

// newest returns the last sequence number of a run, 0 if it has none.
func newest(c *bolt.Cursor, run runKey) uint64 {
	end := run.at(All)
	k, _ := c.Seek(end[:])
	switch {
	case k == nil:
		k, _ = c.Last()
	case !bytes.Equal(k, end[:]):
		k, _ = c.Prev()
	}
	if !bytes.HasPrefix(k, run[:]) {
		return 0
	}
	return binary.BigEndian.Uint64(k[16:])
}

func (t *boltTx) append(run runKey, seq uint64, record []byte) error {
	key := run.at(seq)
	t.db.last[run] = seq
	return t.journal.Put(key[:], record)
}

func (t *boltTx) get(bucket string, key []byte) ([]byte, bool) {
	b := t.bucket(bucket)
	if b == nil {
		return nil, false
	}
	v := b.Get(key)
	return v, v != nil
}

func (t *boltTx) put(bucket string, key, value []byte) error {
	b := t.bucket(bucket)
	if b == nil {
		made, err := t.tx.CreateBucket([]byte(bucket))
		if err != nil {
			return err
		}
		for i := range t.buckets {
			if t.buckets[i].name == bucket {
				t.buckets[i].bucket = made
			}
		}
		b = made
	}
	return b.Put(key, value)
}

func (t *boltTx) delete(bucket string, key []byte) error {
	b := t.bucket(bucket)
	if b == nil {
		return nil
	}
	return b.Delete(key)
}

func (t *boltTx) trim(run runKey, from, to uint64) error {
	delete(t.db.last, run)
	first, end := run.at(from), run.at(to)
	c := t.journal.Cursor()
	// Deleting moves a bbolt cursor in ways that skip keys, so seek each time.
	for k, _ := c.Seek(first[:]); k != nil && bytes.Compare(k, end[:]) <= 0; k, _ = c.Seek(first[:]) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

func (t *boltTx) bucket(name string) *bolt.Bucket {
	for i := range t.buckets {
		if t.buckets[i].name == name {
			return t.buckets[i].bucket
		}
	}
	b := t.tx.Bucket([]byte(name))
	t.buckets = append(t.buckets, namedBucket{name, b})
	return b
}
