package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// A JournalRecord is one record of a run's journal.
type JournalRecord struct {
	Seq    uint64
	Record []byte
}

// RebuildOptions configure [Rebuild].
type RebuildOptions struct {
	// Damaged is a damaged file, from which everything readable is taken.
	// Default none.
	Damaged string
	// Base is a sound file with an older state of the same store. It replaces
	// what Damaged has lost. Default none.
	Base string
	// Skip lists buckets to leave out, because the caller can rebuild them.
	Skip []string
	// Format is the format of Damaged, which is written if neither file has it any
	// more. Base has the same.
	Format int
	// Choose returns which records of a run to keep. intact means that no
	// damage affects the records from Damaged. Choose is called for every run
	// in Damaged, and for the runs in Base that Damaged may have lost.
	// Required.
	Choose func(run string, damaged []JournalRecord, intact bool, base []JournalRecord) []JournalRecord
}

// Rebuilt is the result of [Rebuild].
type Rebuilt struct {
	OneMeta bool   // one meta page of Damaged was unreadable, so its newest commit may be missing
	Lost    []Lost // what could not be read of Damaged
	Buckets map[string]*RebuiltBucket
}

// A RebuiltBucket counts the pairs of one bucket. Salvaged and FromBase are 0
// for the journal, whose records Choose selects.
type RebuiltBucket struct {
	Salvaged int      // taken from Damaged
	FromBase int      // taken from Base
	Damaged  int      // pairs of Damaged whose checksum does not match
	BaseKeys [][]byte // keys of the pairs in FromBase, at most 100,000
}

const maxBaseKeys = 100_000

func (r *Rebuilt) bucket(name string) *RebuiltBucket {
	b := r.Buckets[name]
	if b == nil {
		b = &RebuiltBucket{}
		r.Buckets[name] = b
	}
	return b
}

// Intact reports whether nothing of a bucket was lost.
func (r *Rebuilt) Intact(bucket string) bool {
	for i := range r.Lost {
		if l := &r.Lost[i]; l.Bucket == bucket || l.Bucket == "" && l.contains([]byte(bucket)) {
			return false
		}
	}
	return true
}

// lost reports whether a bucket may have lost the pair with the given key.
func (r *Rebuilt) lost(bucket string, key []byte) bool {
	for i := range r.Lost {
		if r.Lost[i].covers(bucket, key) {
			return true
		}
	}
	return false
}

// lostRun reports whether records of a run may be lost.
func (r *Rebuilt) lostRun(run runKey) bool {
	first, last := run.at(0), run.at(All)
	for i := range r.Lost {
		l := &r.Lost[i]
		if l.Bucket == "" && l.contains([]byte(journalBucket)) {
			return true
		}
		if l.Bucket == journalBucket && bytes.Compare(l.From, last[:]) <= 0 && (l.To == nil || bytes.Compare(first[:], l.To) < 0) {
			return true
		}
	}
	return false
}

// Rebuild writes a new database file from what is readable of a damaged one and
// from an older sound one. Readable pairs are taken from the damaged file. A
// pair of the older file is taken if its key lies in a lost range and the
// damaged file does not have it, so a pair that was deleted since may be
// restored. Choose merges the journals. Neither file is changed, and no content
// of them can crash the process.
func Rebuild(ctx context.Context, to string, o RebuildOptions) (done Rebuilt, err error) {
	b, err := bolt.Open(to, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: true})
	if err != nil {
		return done, fmt.Errorf("rebuild store: %w", err)
	}
	r := &rebuilder{ctx: ctx, opt: o, out: b, done: Rebuilt{Buckets: map[string]*RebuiltBucket{}}, runs: map[runKey]bool{}}
	fault, err := guard(r.run)
	if fault != nil {
		err = explain(fault, to)
	}
	if err == nil {
		err = b.Sync()
	}
	if err = errors.Join(err, b.Close()); err != nil {
		err = fmt.Errorf("rebuild store: %w", err)
	}
	return r.done, err
}
