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

// RebuildOptions say what a database file is made of anew.
type RebuildOptions struct {
	// Damaged is the file to read first, as far as it can be read. Default none.
	Damaged string
	// Base is a sound file, an older state of the same store. What Damaged lost
	// is taken from it. Default none.
	Base string
	// Skip are buckets that are left out, because they can be made anew.
	Skip []string
	// Sane reports whether a pair of Damaged can be what was written; one that
	// cannot counts as lost. Default: all can.
	Sane func(bucket string, key, value []byte) bool
	// Choose decides which records of a run are kept. whole says that no damage
	// touches what Damaged has of it. It is called for every run of Damaged, and
	// for those of Base that Damaged may have lost. Required.
	Choose func(run string, damaged []JournalRecord, whole bool, base []JournalRecord) []JournalRecord
}

// Rebuilt says where the parts of a rebuilt file came from.
type Rebuilt struct {
	OneHead bool   // one head page of Damaged was unreadable, so its newest commit may be missing
	Lost    []Lost // what could not be read of Damaged
	Buckets map[string]*RebuiltBucket
}

// A RebuiltBucket counts the pairs of one bucket; those of the journal are runs.
type RebuiltBucket struct {
	Salvaged int // from Damaged
	FromBase int
	Insane   int      // pairs of Damaged that cannot be what was written
	Taken    [][]byte // keys of FromBase, at most 100,000
}

const maxTaken = 100_000

func (r *Rebuilt) bucket(name string) *RebuiltBucket {
	b := r.Buckets[name]
	if b == nil {
		b = &RebuiltBucket{}
		r.Buckets[name] = b
	}
	return b
}

// Whole reports whether nothing was lost of a bucket.
func (r *Rebuilt) Whole(bucket string) bool {
	for i := range r.Lost {
		if l := &r.Lost[i]; l.Bucket == bucket || l.Bucket == "" && l.holds([]byte(bucket)) {
			return false
		}
	}
	return true
}

// lost reports whether what a bucket had at a key may be lost.
func (r *Rebuilt) lost(bucket string, key []byte) bool {
	for i := range r.Lost {
		l := &r.Lost[i]
		if l.Bucket == bucket && l.holds(key) || l.Bucket == "" && l.holds([]byte(bucket)) {
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
		if l.Bucket == "" && l.holds([]byte(journalBucket)) {
			return true
		}
		if l.Bucket == journalBucket && bytes.Compare(l.From, last[:]) <= 0 && (l.To == nil || bytes.Compare(first[:], l.To) < 0) {
			return true
		}
	}
	return false
}

// Rebuild writes a new database file of what is left of a damaged one and of
// an older sound one, by these rules. A pair that can be read in the damaged
// file is taken from there; one whose key lies where something is lost, and
// that is not there, from the older one; so what was deleted since may be back.
// A run's journal is what Choose makes of both. Neither file is changed, and
// nothing in them can end the process.
func Rebuild(ctx context.Context, to string, o RebuildOptions) (done Rebuilt, err error) {
	b, err := bolt.Open(to, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: true})
	if err != nil {
		return done, fmt.Errorf("rebuild store: %w", err)
	}
	r := &rebuild{ctx: ctx, opt: o, out: b, done: Rebuilt{Buckets: map[string]*RebuiltBucket{}}, runs: map[runKey]bool{}}
	err = r.all()
	if err == nil {
		err = b.Sync()
	}
	if err = errors.Join(err, b.Close()); err != nil {
		err = fmt.Errorf("rebuild store: %w", err)
	}
	return r.done, err
}
