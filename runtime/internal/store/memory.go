package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Memory is a [Store] without a disk, for tests and for embedders whose runs
// need not survive the process. Its batches behave as those of [DB] do,
// including the goroutine that commits them.
//
// Stored values and records are never changed, so readers may use them without
// the lock.
type Memory struct {
	*writer
	mu    sync.RWMutex                 // a commit holds it, also during checks
	runs  map[runKey][]record          // in order; appended to or replaced, never changed in place
	pairs map[string]map[string][]byte // by bucket, then key
	blobs map[string][]byte            // by digest
	// Digests put since the last sweep, and between the last two: see blobs.
	recent, previous map[string]struct{}
	fault            error // error of every commit, nil for none
}

type record struct {
	seq  uint64
	data []byte
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return startMemory(&Memory{
		runs: map[runKey][]record{}, pairs: map[string]map[string][]byte{},
		blobs: map[string][]byte{}, recent: map[string]struct{}{},
	})
}

func startMemory(m *Memory) *Memory {
	m.writer = startWriter(0, m.commit)
	return m
}

// Snapshot returns a new store with the committed state, which is what a crash
// at this moment would leave. It works on a closed store too.
func (m *Memory) Snapshot() *Memory {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := &Memory{
		runs: map[runKey][]record{}, pairs: map[string]map[string][]byte{},
		blobs: maps.Clone(m.blobs), recent: map[string]struct{}{},
	}
	for run, records := range m.runs {
		c.runs[run] = slices.Clip(records) // appends to the copy must not write to our spare capacity
	}
	for name, pairs := range m.pairs {
		c.pairs[name] = maps.Clone(pairs)
	}
	return startMemory(c)
}

// SetFault makes every commit fail with err, as a full disk would, until it is
// called with nil.
func (m *Memory) SetFault(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = err
}

func (m *Memory) commit(tickets []*Ticket) (written bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return false, m.fault
	}
	for _, t := range tickets {
		if t.invalid != nil {
			continue
		}
		if t.refusal, err = apply((*memoryTx)(m), &t.batch); err != nil {
			return false, err
		}
		written = written || t.refusal == nil
	}
	return written, nil
}

// memoryTx implements [tx] on a Memory whose lock is held. After the checks no
// method can fail, so it needs no rollback.
type memoryTx Memory

func (m *memoryTx) lastSeq(run runKey) (uint64, error) { return lastOf(m.runs[run]), nil }

func lastOf(records []record) uint64 {
	if len(records) == 0 {
		return 0
	}
	return records[len(records)-1].seq
}

func (m *memoryTx) get(bucket string, key []byte) ([]byte, bool, error) {
	v, ok := m.pairs[bucket][string(key)]
	return v, ok, nil
}

// append does not change what a reader sees in its shorter slice.
func (m *memoryTx) append(run runKey, seq uint64, data []byte) error {
	m.runs[run] = append(m.runs[run], record{seq, bytes.Clone(data)})
	return nil
}

func (m *memoryTx) put(bucket string, key, value []byte) error {
	if m.pairs[bucket] == nil {
		m.pairs[bucket] = map[string][]byte{}
	}
	m.pairs[bucket][string(key)] = append([]byte{}, value...)
	return nil
}

func (m *memoryTx) delete(bucket string, key []byte) error {
	delete(m.pairs[bucket], string(key))
	return nil
}

func (m *memoryTx) trim(run runKey, from, to uint64) error {
	var left []record
	for _, r := range m.runs[run] {
		if r.seq < from || r.seq > to {
			left = append(left, r)
		}
	}
	if left == nil {
		delete(m.runs, run)
		return nil
	}
	m.runs[run] = left
	return nil
}

// Journal implements [Store].
func (m *Memory) Journal(run string, from uint64, fn func(seq uint64, record []byte) error) error {
	key, err := parseRun(run)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	if m.isClosed() {
		return fmt.Errorf("read journal of run %q: %w", run, ErrClosed)
	}
	m.mu.RLock()
	records := m.runs[key]
	m.mu.RUnlock()
	at := sort.Search(len(records), func(i int) bool { return records[i].seq >= from })
	for _, r := range records[at:] {
		if err := fn(r.seq, r.data); err != nil {
			return err
		}
	}
	return nil
}

// LastSeq implements [Store].
func (m *Memory) LastSeq(run string) (seq uint64, found bool, err error) {
	key, err := parseRun(run)
	if err != nil {
		return 0, false, fmt.Errorf("read journal: %w", err)
	}
	if m.isClosed() {
		return 0, false, fmt.Errorf("read journal of run %q: %w", run, ErrClosed)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	seq = lastOf(m.runs[key])
	return seq, seq != 0, nil
}

// Get implements [Store].
func (m *Memory) Get(bucket string, key []byte) (value []byte, found bool, err error) {
	if err := checkPair(bucket, key); err != nil {
		return nil, false, fmt.Errorf("get: %w", err)
	}
	if m.isClosed() {
		return nil, false, fmt.Errorf("get bucket %q: %w", bucket, ErrClosed)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.pairs[bucket][string(key)]
	return bytes.Clone(v), ok, nil
}

// Scan implements [Store]. Unlike that of [DB], it sees the state at the time
// of the call.
func (m *Memory) Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error {
	if err := checkBucket(bucket); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if m.isClosed() {
		return fmt.Errorf("scan bucket %q: %w", bucket, ErrClosed)
	}
	m.mu.RLock()
	pairs := maps.Clone(m.pairs[bucket])
	m.mu.RUnlock()
	keys := slices.Sorted(maps.Keys(pairs))
	if reverse {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if !strings.HasPrefix(k, string(prefix)) {
			continue
		}
		if order := strings.Compare(k, string(after)); after != nil && (order == 0 || (order < 0) != reverse) {
			continue
		}
		if !fn([]byte(k), pairs[k]) {
			return nil
		}
	}
	return nil
}

// PutBlob implements [Store].
func (m *Memory) PutBlob(data []byte) (digest string, err error) {
	if m.isClosed() {
		return "", fmt.Errorf("put blob: %w", ErrClosed)
	}
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent[digest] = struct{}{}
	if _, ok := m.blobs[digest]; !ok {
		m.blobs[digest] = append([]byte{}, data...)
		m.writer.stats.change(func(s *Stats) { s.Blobs++; s.BlobBytes += uint64(len(data)) })
	}
	return digest, nil
}

// Blob implements [Store].
func (m *Memory) Blob(digest string) ([]byte, error) {
	if _, err := parseDigest(digest); err != nil {
		return nil, err
	}
	if m.isClosed() {
		return nil, fmt.Errorf("read blob: %w", ErrClosed)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	data, ok := m.blobs[digest]
	if !ok {
		return nil, fmt.Errorf("read blob %q: %w", digest, ErrNotFound)
	}
	return append([]byte{}, data...), nil
}

// BlobSize does the same as [DB.BlobSize].
func (m *Memory) BlobSize(digest string) (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	data, ok := m.blobs[digest]
	if !ok {
		return 0, fmt.Errorf("size of blob %q: %w", digest, ErrNotFound)
	}
	return int64(len(data)), nil
}

// SweepBlobs does the same as [DB.SweepBlobs].
func (m *Memory) SweepBlobs(keep func(digest string) bool) (removed int, freed int64, err error) {
	if err := m.Health(); err != nil {
		return 0, 0, fmt.Errorf("sweep blobs: %w", err)
	}
	if m.isClosed() {
		return 0, 0, fmt.Errorf("sweep blobs: %w", ErrClosed)
	}
	m.mu.Lock()
	m.previous, m.recent = m.recent, map[string]struct{}{}
	digests := slices.Sorted(maps.Keys(m.blobs))
	m.mu.Unlock()
	for _, digest := range digests {
		if keep(digest) {
			continue
		}
		m.mu.Lock()
		_, fresh := m.recent[digest]
		_, old := m.previous[digest]
		if data, ok := m.blobs[digest]; ok && !fresh && !old {
			delete(m.blobs, digest)
			removed++
			freed += int64(len(data))
		}
		m.mu.Unlock()
	}
	return removed, freed, nil
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.stop()
	if err := m.Health(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

var _ Store = (*Memory)(nil)
