package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// A rebuilder is the state of one [Rebuild]. It must be used by one goroutine.
type rebuilder struct {
	ctx  context.Context
	opt  RebuildOptions
	out  *bolt.DB
	tx   *bolt.Tx
	size int // payload of tx in bytes
	done Rebuilt
	runs map[runKey]bool // runs of the damaged file; true once their records are chosen
}

func (r *rebuilder) run() (err error) {
	defer func() {
		if r.tx != nil {
			err = errors.Join(err, r.tx.Rollback())
		}
	}()
	// Read the damaged file first: the older one only replaces what is missing.
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.salvage(); err != nil {
		return err
	}
	if err := r.fillFromBase(); err != nil {
		return err
	}
	if err := r.chooseRest(); err != nil {
		return err
	}
	if err := r.writeMetadata(); err != nil {
		return err
	}
	tx := r.tx
	r.tx = nil
	return tx.Commit()
}

// begin starts the next transaction of the new file.
func (r *rebuilder) begin() (err error) {
	r.tx, err = r.out.Begin(true)
	r.size = 0
	return err
}

// commitIfLarge adds n bytes of payload and commits the transaction if it is
// large.
func (r *rebuilder) commitIfLarge(n int) error {
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	if r.size += n; r.size < compactTxBytes {
		return nil
	}
	tx := r.tx
	r.tx = nil
	if err := tx.Commit(); err != nil {
		return err
	}
	return r.begin()
}

// put writes a pair. bbolt copies the key, and uses the value until the commit.
func (r *rebuilder) put(bucket string, key, value []byte) error {
	b, err := r.tx.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	if err := b.Put(key, appendWithChecksum(nil, bucket, key, value)); err != nil {
		return err
	}
	return r.commitIfLarge(len(key) + len(value))
}

// has reports whether the new file has a pair already.
func (r *rebuilder) has(bucket string, key []byte) bool {
	b := r.tx.Bucket([]byte(bucket))
	return b != nil && b.Get(key) != nil
}

// skipped reports whether a bucket is left out.
func (r *rebuilder) skipped(bucket string) bool {
	for _, s := range r.opt.Skip {
		if s == bucket {
			return true
		}
	}
	return false
}

// salvage copies everything readable from the damaged file.
func (r *rebuilder) salvage() error {
	if r.opt.Damaged == "" {
		r.done.Lost = []Lost{{Why: "no damaged file was given"}}
		return nil
	}
	f, err := regularfile.OpenFile(r.opt.Damaged, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// A truncated file has both an error and readable pages.
	p, err := openPages(f, info.Size())
	if p == nil {
		r.done.Lost = []Lost{{Why: err.Error()}}
		return nil
	}
	r.done.OneMeta = !p.bothMeta
	return p.walk(pageVisitor{
		pair: func(bucket string, k, v []byte) error {
			switch {
			case r.skipped(bucket):
				return nil
			case bucket == journalBucket && len(k) != len(seqKey{}), len(v) > maxValue:
				r.done.Lost = append(r.done.Lost, Lost{Bucket: bucket, From: bytes.Clone(k), To: append(bytes.Clone(k), 0), Why: "the pair has a length that this program does not write"})
				return nil
			case bucket == journalBucket:
				r.runs[runKey(k[:16])] = false
			default:
				r.done.bucket(bucket).Salvaged++
			}
			return r.put(bucket, k, v)
		},
		lost: func(l Lost) error {
			if l.Values > 0 && !r.skipped(l.Bucket) {
				r.done.bucket(l.Bucket).Damaged += l.Values
			}
			r.done.Lost = append(r.done.Lost, l)
			return nil
		},
	})
}

// fillFromBase takes from the older file what the damaged one has lost.
func (r *rebuilder) fillFromBase() error {
	if r.opt.Base == "" {
		return nil
	}
	f, err := regularfile.OpenFile(r.opt.Base, os.O_RDONLY, 0)
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
	// Keys are ordered by run, so the records of a run are adjacent. Only one
	// run at a time is in memory.
	var run runKey
	var records []JournalRecord
	finishRun := func() error {
		if len(records) == 0 {
			return nil
		}
		chosen, inDamaged := r.runs[run]
		lost := r.done.lostRun(run)
		if chosen || !inDamaged && !lost { // do not restore a run that retention has deleted
			records = nil
			return nil
		}
		err := r.chooseRecords(run, !lost, records)
		records = nil
		return err
	}
	err = p.walk(pageVisitor{
		pair: func(bucket string, k, v []byte) error {
			if bucket == journalBucket && len(k) == len(seqKey{}) && !r.skipped(bucket) {
				if at := runKey(k[:16]); at != run {
					if err := finishRun(); err != nil {
						return err
					}
					run = at
				}
				records = append(records, JournalRecord{binary.BigEndian.Uint64(k[16:]), bytes.Clone(v)})
				return nil
			}
			if r.skipped(bucket) || bucket == journalBucket || !r.done.lost(bucket, k) || r.has(bucket, k) {
				return nil
			}
			b := r.done.bucket(bucket)
			b.FromBase++
			if len(b.BaseKeys) < maxBaseKeys {
				b.BaseKeys = append(b.BaseKeys, bytes.Clone(k))
			}
			return r.put(bucket, k, v)
		},
		lost: func(l Lost) error { return &DamagedError{Path: r.opt.Base, Count: 1, Places: []string{l.describe()}} },
	})
	if err != nil {
		return err
	}
	return finishRun()
}

// chooseRest chooses the records of the runs that the older file does not have.
func (r *rebuilder) chooseRest() error {
	for run, decided := range r.runs {
		if decided {
			continue
		}
		if err := r.chooseRecords(run, !r.done.lostRun(run), nil); err != nil {
			return err
		}
	}
	return nil
}

// chooseRecords replaces the records of a run by those that Choose keeps.
func (r *rebuilder) chooseRecords(run runKey, intact bool, base []JournalRecord) error {
	r.runs[run] = true
	b, err := r.tx.CreateBucketIfNotExists([]byte(journalBucket))
	if err != nil {
		return err
	}
	// Read all records before the first change: deleting moves a bbolt cursor.
	var have []JournalRecord
	c := b.Cursor()
	first := run.at(0)
	for k, stored := c.Seek(first[:]); bytes.HasPrefix(k, run[:]); k, stored = c.Next() {
		record, ok := splitChecksum(journalBucket, k, stored)
		if !ok { // only sound records were written
			return fmt.Errorf("read back %s: the checksum does not match", keyText(journalBucket, k))
		}
		have = append(have, JournalRecord{binary.BigEndian.Uint64(k[16:]), bytes.Clone(record)})
	}
	keep := r.opt.Choose(runText(run), have, intact, base)
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
		if err := b.Put(key[:], appendWithChecksum(nil, journalBucket, key[:], rec.Record)); err != nil {
			return err
		}
		size += len(rec.Record)
	}
	return r.commitIfLarge(size)
}

// writeMetadata writes the store's metadata.
func (r *rebuilder) writeMetadata() error {
	if _, err := r.tx.CreateBucketIfNotExists([]byte(journalBucket)); err != nil {
		return err
	}
	missing := map[string]uint64{string(idKey): newID(), string(createdKey): uint64(time.Now().Unix())}
	if r.opt.Damaged != "" && r.opt.Format > 0 && r.done.lost(storeBucket, formatKey) {
		missing[string(formatKey)] = uint64(r.opt.Format)
	}
	for key, n := range missing {
		if r.has(storeBucket, []byte(key)) {
			continue // copied from one of the files: the store keeps its identity
		}
		if err := r.put(storeBucket, []byte(key), binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
	}
	return nil
}

// runText formats a run as UUID.
func runText(run runKey) string {
	h := hex.EncodeToString(run[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
