package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"

	bolt "go.etcd.io/bbolt"
)

// A rebuild is one under way. It is used by one goroutine.
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
	// The damaged file first: the older one only fills in.
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

// begin opens the next transaction of the new file.
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

// put writes a pair. bbolt keeps the slices until the commit, and those of a
// walk are gone before, hence the copies.
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

// has reports whether the new file has a pair already.
func (r *rebuild) has(bucket string, key []byte) bool {
	b := r.tx.Bucket([]byte(bucket))
	return b != nil && b.Get(key) != nil
}

// skips reports whether a bucket is left out.
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
	// A file that is cut off has an error and pages all the same.
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
	// Keys sort by run, so the records of one come one behind the other, and one
	// run at a time is held in memory.
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
	// Read before anything is changed: deleting moves a bbolt cursor.
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
