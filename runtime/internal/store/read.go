package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A walk copies at most this much per read transaction and runs its callback
// outside it: a long read transaction would keep the writer from growing the
// file.
const (
	chunkPairs = 512
	chunkBytes = 256 << 10
)

// view runs fn in a read transaction.
func (db *DB) view(fn func(tx *bolt.Tx) error) error {
	if db.writer != nil && db.isClosed() { // without one, Open migrates
		return ErrClosed
	}
	err := db.try(db.examine, func() error { return db.bolt.View(fn) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed // Close ran meanwhile
	}
	return err
}

// Journal implements [Store].
func (db *DB) Journal(run string, from uint64, fn func(seq uint64, record []byte) error) error {
	key, err := parseRun(run)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	var chunk pairs
	for more := true; more; {
		chunk.reset()
		err := db.view(func(tx *bolt.Tx) error {
			start := key.at(from)
			c := tx.Bucket([]byte(journalBucket)).Cursor()
			k, v := c.Seek(start[:])
			for ; bytes.HasPrefix(k, key[:]) && !chunk.full(); k, v = c.Next() {
				chunk.add(journalBucket, k, v, false)
			}
			more = bytes.HasPrefix(k, key[:])
			return nil
		})
		if err != nil {
			return fmt.Errorf("read journal of run %q: %w", run, err)
		}
		for i := range chunk.ends {
			k, record, ok := chunk.at(i)
			if !ok {
				return db.damagedValue(journalBucket, k)
			}
			seq := binary.BigEndian.Uint64(k[16:])
			if err := fn(seq, record); err != nil {
				return err
			}
			from = seq + 1
		}
	}
	return nil
}

// LastSeq implements [Store].
func (db *DB) LastSeq(run string) (seq uint64, found bool, err error) {
	key, err := parseRun(run)
	if err != nil {
		return 0, false, fmt.Errorf("read journal: %w", err)
	}
	err = db.view(func(tx *bolt.Tx) (err error) {
		seq, err = db.lastSeqOf(tx.Bucket([]byte(journalBucket)).Cursor(), key)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("read journal of run %q: %w", run, err)
	}
	return seq, seq != 0, nil
}

// Get implements [Store].
func (db *DB) Get(bucket string, key []byte) (value []byte, found bool, err error) {
	if err := checkPair(bucket, key); err != nil {
		return nil, false, fmt.Errorf("get: %w", err)
	}
	err = db.view(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil
		}
		stored := b.Get(key)
		if stored == nil {
			return nil
		}
		v, ok := splitChecksum(bucket, key, stored)
		if !ok {
			return db.damagedValue(bucket, key)
		}
		found, value = true, append([]byte{}, v...) // an empty value is not nil
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("get bucket %q: %w", bucket, err)
	}
	return value, found, nil
}

// Scan implements [Store]. It skips damaged values, so that one does not hide
// all others, and returns a [*ValueError] at the end.
func (db *DB) Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error {
	if err := checkBucket(bucket); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	prefix, after = bytes.Clone(prefix), bytes.Clone(after)
	var chunk pairs
	var bad *ValueError
	for more := true; more; {
		chunk.reset()
		err := db.view(func(tx *bolt.Tx) error {
			more = false
			b := tx.Bucket([]byte(bucket))
			if b == nil {
				return nil
			}
			c := b.Cursor()
			step := c.Next
			if reverse {
				step = c.Prev
			}
			k, v := startScan(c, prefix, after, reverse)
			for ; k != nil && bytes.HasPrefix(k, prefix) && !chunk.full(); k, v = step() {
				chunk.add(bucket, k, v, reverse)
			}
			more = k != nil && bytes.HasPrefix(k, prefix)
			return nil
		})
		if err != nil {
			return fmt.Errorf("scan bucket %q: %w", bucket, err)
		}
		for i := range chunk.ends {
			k, value, ok := chunk.at(i)
			after = append(after[:0], k...)
			switch {
			case !ok && bad == nil:
				bad = db.damagedValue(bucket, k)
			case !ok:
				bad.More++
			case !fn(k, value):
				return bad.orNil()
			}
		}
	}
	return bad.orNil()
}

// startScan moves the cursor to the first pair of a scan. If that pair lies
// outside the prefix, the scan is empty.
func startScan(c *bolt.Cursor, prefix, after []byte, reverse bool) (k, v []byte) {
	if !reverse {
		from := prefix
		if bytes.Compare(after, prefix) > 0 {
			from = after
		}
		k, v = c.Seek(from)
		if after != nil && bytes.Equal(k, after) {
			k, v = c.Next()
		}
		return k, v
	}
	end := prefixEnd(prefix)
	if after != nil && (end == nil || bytes.Compare(after, end) < 0) {
		end = after
	}
	if end == nil {
		return c.Last()
	}
	if k, _ := c.Seek(end); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// prefixEnd returns the first key behind all keys that begin with prefix, nil
// if there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := slices.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

// pairs has copies of keys and values in one buffer that is reused.
type pairs struct {
	buf  []byte
	ends []pairEnd
	last []byte // the key that was added last, also before a reset
}

type pairEnd struct {
	key, value int
	sound      bool // the checksum matches; otherwise the value is empty
}

func (p *pairs) reset() { p.buf, p.ends = p.buf[:0], p.ends[:0] }

func (p *pairs) full() bool { return len(p.ends) >= chunkPairs || len(p.buf) >= chunkBytes }

// add copies a pair of the mapped file. The checksum is compared before the value
// is copied, because a damaged length could take any amount of memory.
func (p *pairs) add(table string, key, stored []byte, reverse bool) {
	mustFollow(p.last, key, reverse)
	p.last = append(p.last[:0], key...)
	value, sound := splitChecksum(table, key, stored)
	if !sound {
		value = nil
	}
	p.buf = append(p.buf, key...)
	k := len(p.buf)
	p.buf = append(p.buf, value...)
	p.ends = append(p.ends, pairEnd{k, len(p.buf), sound})
}

func (p *pairs) at(i int) (key, value []byte, sound bool) {
	begin := 0
	if i > 0 {
		begin = p.ends[i-1].value
	}
	e := p.ends[i]
	return p.buf[begin:e.key:e.key], p.buf[e.key:e.value:e.value], e.sound
}

// mustFollow panics if key does not follow last in the order of a scan, or is
// longer than bbolt allows. Only a damaged page has such keys, and a scan that
// continued from them might not end. Without a last key any key follows.
func mustFollow(last, key []byte, reverse bool) {
	order := bytes.Compare(last, key)
	if len(key) > maxKey || len(last) > 0 && (order == 0 || (order > 0) != reverse) {
		panic(fmt.Sprintf("key %.100q does not follow key %.100q", key, last))
	}
}
