package store

import (
	"bytes"
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// maxLastSeqs bounds the number of runs whose newest sequence number is cached.
const maxLastSeqs = 8192

// maxValueBuf bounds the capacity of the value buffer that is kept between
// commits.
const maxValueBuf = 1 << 20

// Keys of the bucket "store", which has the store's metadata.
var (
	commitKey  = []byte("commit") // number of the newest commit
	createdKey = []byte("made")   // when the store was created, seconds since 1970
	idKey      = []byte("id")     // random identity of the store
)

// commit applies the tickets in one bbolt transaction.
//
// Every commit writes its number. If bbolt writes its last page and the sync
// fails, it returns an error although the file may show the new state. The next
// transaction then finds the number in the file and does not apply the batches
// a second time; its own commit, even without changes, makes them durable.
func (db *DB) commit(tickets []*Ticket) (written bool, err error) {
	db.commitMu.Lock()
	defer db.commitMu.Unlock()
	if b := db.broken.Load(); b != nil {
		return false, b.err
	}
	if db.flagPending {
		// Without the flag the next owner would not notice a crash of this
		// process.
		if db.flagPending, err = writeFlag(db.flag, false); err != nil {
			return false, err
		}
		if db.flagPending {
			return false, errFlagPending
		}
	}
	err = db.try(db.examineInCommit, func() (err error) {
		written, err = db.commitTx(tickets)
		return err
	})
	return written, err
}

func (db *DB) commitTx(tickets []*Ticket) (written bool, err error) {
	btx, err := db.bolt.Begin(true)
	if err != nil {
		return false, err
	}
	defer btx.Rollback() //nolint:errcheck // a no-op after Commit; before that err is the error to return
	defer func() {
		if err != nil {
			clear(db.lastSeqs) // it has numbers that were not committed
		}
	}()

	// bbolt uses the slices of values until the commit, so those of the
	// previous commit are free now.
	if db.valueBuf = db.valueBuf[:0]; cap(db.valueBuf) > maxValueBuf {
		db.valueBuf = nil
	}
	metadata := btx.Bucket([]byte(storeBucket))
	applied := false
	if db.pending != 0 {
		newest, err := db.readMetadata(metadata, commitKey)
		if err != nil {
			return false, err
		}
		applied = newest == db.pending
	}
	if !applied {
		if written, err = db.applyAll(btx, tickets); err != nil || !written {
			return false, err
		}
	}
	db.pending = db.commits + 1
	if err = db.putMetadata(metadata, commitKey, db.pending); err != nil {
		return false, err
	}
	id := uint64(btx.ID())
	db.bolt.log.inCommit.Store(true)
	err = btx.Commit()
	db.bolt.log.inCommit.Store(false)
	if err != nil {
		return false, err
	}
	db.newest.Store(id)
	if db.afterCommit != nil {
		if err = db.afterCommit(); err != nil {
			return false, err
		}
	}
	db.commits, db.pending = db.pending, 0
	return true, nil
}

// applyAll applies the tickets in order. any reports whether one of them took
// effect. A retry evaluates all checks again, because the failed commit had no
// effect.
func (db *DB) applyAll(btx *bolt.Tx, tickets []*Ticket) (any bool, err error) {
	to := boltTx{db: db, journal: btx.Bucket([]byte(journalBucket)), tx: btx}
	if len(db.lastSeqs) > maxLastSeqs {
		clear(db.lastSeqs)
	}
	for _, t := range tickets {
		if t.invalid != nil {
			continue
		}
		t.refusal, err = apply(&to, &t.batch)
		if err != nil {
			return false, err
		}
		any = any || t.refusal == nil
	}
	return any, nil
}

// readMetadata reads a number from the store's metadata, 0 if it is not there.
func (db *DB) readMetadata(metadata *bolt.Bucket, key []byte) (uint64, error) {
	stored := metadata.Get(key)
	if stored == nil {
		return 0, nil
	}
	v, ok := splitChecksum(storeBucket, key, stored)
	if !ok || len(v) != 8 {
		return 0, db.damagedValue(storeBucket, key)
	}
	return binary.BigEndian.Uint64(v), nil
}

// putMetadata writes a number to the store's metadata.
func (db *DB) putMetadata(metadata *bolt.Bucket, key []byte, n uint64) error {
	return metadata.Put(key, db.withChecksum(storeBucket, key, binary.BigEndian.AppendUint64(nil, n)))
}

// withChecksum returns a value with its checksum, valid until the next commit.
// Only the writer may call it.
func (db *DB) withChecksum(table string, key, value []byte) []byte {
	at := len(db.valueBuf)
	db.valueBuf = appendWithChecksum(db.valueBuf, table, key, value)
	return db.valueBuf[at:len(db.valueBuf):len(db.valueBuf)]
}

// boltTx implements [tx] on bbolt. bbolt copies keys, so they may be reused.
type boltTx struct {
	db      *DB
	tx      *bolt.Tx
	journal *bolt.Bucket
	buckets []namedBucket // buckets opened so far; a commit has few
}

type namedBucket struct {
	name   string
	bucket *bolt.Bucket // nil if it does not exist
}

func (t *boltTx) lastSeq(run runKey) (uint64, error) {
	if seq, ok := t.db.lastSeqs[run]; ok {
		return seq, nil
	}
	seq, err := t.db.lastSeqOf(t.journal.Cursor(), run)
	if err != nil {
		return 0, err
	}
	t.db.lastSeqs[run] = seq
	return seq, nil
}

// lastSeqOf returns the newest sequence number of a run, 0 if it has no
// records. The record's checksum covers the number.
func (db *DB) lastSeqOf(c *bolt.Cursor, run runKey) (uint64, error) {
	end := run.at(All)
	k, v := c.Seek(end[:])
	switch {
	case k == nil:
		k, v = c.Last()
	case !bytes.Equal(k, end[:]):
		k, v = c.Prev()
	}
	if !bytes.HasPrefix(k, run[:]) {
		return 0, nil
	}
	if _, ok := splitChecksum(journalBucket, k, v); !ok {
		return 0, db.damagedValue(journalBucket, k)
	}
	return binary.BigEndian.Uint64(k[16:]), nil
}

func (t *boltTx) append(run runKey, seq uint64, record []byte) error {
	key := run.at(seq)
	t.db.lastSeqs[run] = seq
	return t.journal.Put(key[:], t.db.withChecksum(journalBucket, key[:], record))
}

func (t *boltTx) get(bucket string, key []byte) (value []byte, exists bool, err error) {
	b := t.bucket(bucket)
	if b == nil {
		return nil, false, nil
	}
	stored := b.Get(key)
	if stored == nil {
		return nil, false, nil
	}
	value, ok := splitChecksum(bucket, key, stored)
	if !ok {
		return nil, false, t.db.damagedValue(bucket, key)
	}
	return value, true, nil
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
	return b.Put(key, t.db.withChecksum(bucket, key, value))
}

func (t *boltTx) delete(bucket string, key []byte) error {
	b := t.bucket(bucket)
	if b == nil {
		return nil
	}
	return b.Delete(key)
}

func (t *boltTx) trim(run runKey, from, to uint64) error {
	delete(t.db.lastSeqs, run)
	first, end := run.at(from), run.at(to)
	c := t.journal.Cursor()
	var last []byte
	// Deleting moves a bbolt cursor in ways that skip keys, so seek each time.
	for k, _ := c.Seek(first[:]); k != nil && bytes.Compare(k, end[:]) <= 0; k, _ = c.Seek(first[:]) {
		mustFollow(last, k, false) // a damaged page may keep what was deleted
		last = append(last[:0], k...)
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
