package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

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

type rebuild struct {
	ctx  context.Context
	opt  RebuildOptions
	out  *bolt.DB
	tx   *bolt.Tx
	size int // payload of tx
	done Rebuilt
	runs map[runKey]bool // of the damaged file; true once decided
}

func (r *rebuild) all() (err error) {
	defer func() {
		if r.tx != nil {
			err = errors.Join(err, r.tx.Rollback())
		}
	}()
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.salvage(); err != nil {
		return err
	}
	if err := r.base(); err != nil {
		return err
	}
	if err := r.decideRest(); err != nil {
		return err
	}
	if err := r.own(); err != nil {
		return err
	}
	tx := r.tx
	r.tx = nil
	return tx.Commit()
}

func (r *rebuild) begin() (err error) {
	r.tx, err = r.out.Begin(true)
	r.size = 0
	return err
}

// step commits what has come together so far.
func (r *rebuild) step(n int) error {
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	if r.size += n; r.size < compactStep {
		return nil
	}
	tx := r.tx
	r.tx = nil
	if err := tx.Commit(); err != nil {
		return err
	}
	return r.begin()
}

func (r *rebuild) put(bucket string, key, value []byte) error {
	b, err := r.tx.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	if err := b.Put(bytes.Clone(key), bytes.Clone(value)); err != nil {
		return err
	}
	return r.step(len(key) + len(value))
}

func (r *rebuild) has(bucket string, key []byte) bool {
	b := r.tx.Bucket([]byte(bucket))
	return b != nil && b.Get(key) != nil
}

func (r *rebuild) skips(bucket string) bool {
	for _, s := range r.opt.Skip {
		if s == bucket {
			return true
		}
	}
	return false
}

// salvage copies what can be read of the damaged file.
func (r *rebuild) salvage() error {
	if r.opt.Damaged == "" {
		r.done.Lost = []Lost{{Why: "nothing is taken from the store as it was"}}
		return nil
	}
	f, err := os.Open(r.opt.Damaged)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, err := openPages(f, info.Size())
	if p == nil {
		r.done.Lost = []Lost{{Why: err.Error()}}
		return nil
	}
	r.done.OneHead = !p.other
	return p.walk(pageVisitor{
		pair: func(bucket string, k, v []byte) error {
			switch {
			case r.skips(bucket):
				return nil
			case bucket == journalBucket && len(k) != len(seqKey{}),
				bucket != journalBucket && bucket != storeBucket && r.opt.Sane != nil && !r.opt.Sane(bucket, k, v),
				len(v) > maxValue:
				r.done.bucket(bucket).Insane++
				r.done.Lost = append(r.done.Lost, Lost{Bucket: bucket, From: bytes.Clone(k), To: append(bytes.Clone(k), 0), Why: "a value is not what can have been written"})
				return nil
			case bucket == journalBucket:
				r.runs[runKey(k[:16])] = false
			default:
				r.done.bucket(bucket).Salvaged++
			}
			return r.put(bucket, k, v)
		},
		lost: func(l Lost) error { r.done.Lost = append(r.done.Lost, l); return nil },
	})
}

// base fills in from the older file what is lost.
func (r *rebuild) base() error {
	if r.opt.Base == "" {
		return nil
	}
	f, err := os.Open(r.opt.Base)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, err := openPages(f, info.Size())
	if err != nil {
		return err
	}
	var run runKey
	var records []JournalRecord
	flush := func() error {
		if len(records) == 0 {
			return nil
		}
		known, own := r.runs[run]
		lost := r.done.lostRun(run)
		if known || !own && !lost { // a run that retention took is not brought back
			records = nil
			return nil
		}
		err := r.decide(run, !lost, records)
		records = nil
		return err
	}
	err = p.walk(pageVisitor{
		pair: func(bucket string, k, v []byte) error {
			if bucket == journalBucket && len(k) == len(seqKey{}) && !r.skips(bucket) {
				if at := runKey(k[:16]); at != run {
					if err := flush(); err != nil {
						return err
					}
					run = at
				}
				records = append(records, JournalRecord{binary.BigEndian.Uint64(k[16:]), bytes.Clone(v)})
				return nil
			}
			if r.skips(bucket) || bucket == journalBucket || !r.done.lost(bucket, k) || r.has(bucket, k) {
				return nil
			}
			b := r.done.bucket(bucket)
			b.FromBase++
			if len(b.Taken) < maxTaken {
				b.Taken = append(b.Taken, bytes.Clone(k))
			}
			return r.put(bucket, k, v)
		},
		lost: func(l Lost) error { return &DamagedError{Path: r.opt.Base, Count: 1, Places: []string{l.where()}} },
	})
	if err != nil {
		return err
	}
	return flush()
}

// decideRest decides about the runs that the older file does not have.
func (r *rebuild) decideRest() error {
	for run, decided := range r.runs {
		if decided {
			continue
		}
		if err := r.decide(run, !r.done.lostRun(run), nil); err != nil {
			return err
		}
	}
	return nil
}

// decide replaces the records of a run by those that Choose keeps.
func (r *rebuild) decide(run runKey, whole bool, base []JournalRecord) error {
	r.runs[run] = true
	b, err := r.tx.CreateBucketIfNotExists([]byte(journalBucket))
	if err != nil {
		return err
	}
	var have []JournalRecord
	c := b.Cursor()
	first := run.at(0)
	for k, v := c.Seek(first[:]); bytes.HasPrefix(k, run[:]); k, v = c.Next() {
		have = append(have, JournalRecord{binary.BigEndian.Uint64(k[16:]), bytes.Clone(v)})
	}
	keep := r.opt.Choose(runText(run), have, whole, base)
	keeps := map[uint64]bool{}
	for _, rec := range keep {
		keeps[rec.Seq] = true
	}
	for _, rec := range have {
		if key := run.at(rec.Seq); !keeps[rec.Seq] {
			if err := b.Delete(key[:]); err != nil {
				return err
			}
		}
	}
	size := 0
	for _, rec := range keep {
		key := run.at(rec.Seq)
		if err := b.Put(bytes.Clone(key[:]), rec.Record); err != nil {
			return err
		}
		size += len(rec.Record)
	}
	return r.step(size)
}

// own writes what every store keeps for itself.
func (r *rebuild) own() error {
	if _, err := r.tx.CreateBucketIfNotExists([]byte(journalBucket)); err != nil {
		return err
	}
	_, err := r.tx.CreateBucketIfNotExists([]byte(storeBucket))
	return err
}

// runText is the UUID of a key as text.
func runText(run runKey) string {
	h := hex.EncodeToString(run[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
