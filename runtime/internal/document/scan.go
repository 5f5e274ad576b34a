package document

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Scan calls fn for the documents of a collection in the order of their IDs, or in
// reverse order, beginning after the ID after, until fn returns false or ctx ends.
func (tx *Tx) Scan(ctx context.Context, collection, after string, reverse bool, fn func(sentinels.Document) bool) error {
	if tx.done {
		return errDone
	}
	return tx.merged(area{bucket: Bucket, prefix: documentKey(collection, "")}, after, reverse, func(_ string, value []byte, w *pendingWrite) (bool, error) {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		var doc sentinels.Document
		size := len(value)
		if w != nil {
			doc, size = w.doc, w.size
		} else if err := json.Unmarshal(value, &doc); err != nil {
			return false, err
		}
		more := fn(doc)
		return more, tx.counted(size)
	})
}

// BoundReads sets how many bytes of documents the scans of the transaction should read; 0 is any
// number. It ends no scan: what scans asks [Tx.ReadEnough], and says where it ended.
func (tx *Tx) BoundReads(most int64) { tx.mostRead = most }

// OnRead has charge called with the bytes of each document that is read. An error of it ends
// the read.
func (tx *Tx) OnRead(charge func(bytes int64) error) { tx.onRead = charge }

// counted counts a document that a scan has read.
func (tx *Tx) counted(size int) error {
	tx.read += int64(size)
	if tx.onRead == nil {
		return nil
	}
	return tx.onRead(int64(size))
}

// ReadEnough reports whether scans have read as much as the transaction should, before the document
// that the callback of a scan has.
func (tx *Tx) ReadEnough() bool { return tx.mostRead > 0 && tx.read >= tx.mostRead }

// An area is the pairs of a bucket below a prefix.
type area struct {
	bucket string
	mark   string // of the bucket's keys in maps of writes
	prefix []byte
}

// merged calls fn for the pairs of an area with what is not committed yet, in the order of
// their suffixes behind the prefix, beginning after the suffix after unless it is empty,
// until fn returns false or an error. A pair is a value of the store or a write.
func (tx *Tx) merged(a area, after string, reverse bool, fn func(suffix string, value []byte, w *pendingWrite) (bool, error)) error {
	var first []byte
	if after != "" {
		first = join(a.prefix, []byte(after))
	}
	m := newMerge(tx.uncommitted(a.mark+string(a.prefix)), reverse, after)
	var bad error
	stopped := false
	emit := func(suffix string, value []byte, w *pendingWrite) bool {
		more, err := fn(suffix, value, w)
		bad = err
		stopped = !more || err != nil
		return !stopped
	}
	err := tx.store.opt.Store.Scan(a.bucket, a.prefix, first, reverse, func(key, value []byte) bool {
		suffix := string(key[len(a.prefix):])
		for _, w := range m.before(suffix) {
			if !emit(w.suffix, nil, &w.pendingWrite) {
				return false
			}
		}
		return m.shadows(suffix) || emit(suffix, value, nil)
	})
	if err = errors.Join(err, bad); err != nil || stopped {
		return err
	}
	for _, w := range m.rest() {
		if !emit(w.suffix, nil, &w.pendingWrite) {
			break
		}
	}
	return bad
}

// uncommitted returns the writes below prefix that the store does not have yet, by suffix.
func (tx *Tx) uncommitted(prefix string) map[string]pendingWrite {
	writes := map[string]pendingWrite{}
	collect := func(from map[string]pendingWrite) {
		for key, w := range from {
			if suffix, ok := strings.CutPrefix(key, prefix); ok {
				writes[suffix] = w
			}
		}
	}
	tx.store.pendingMu.Lock()
	collect(tx.store.pending)
	tx.store.pendingMu.Unlock()
	collect(tx.wrote)
	return writes
}

// A merge puts writes that are not committed yet into a scan of the committed
// pairs, in one order.
type merge struct {
	writes   map[string]pendingWrite // by suffix
	suffixes []string                // of writes, in scan order
	reverse  bool
}

// A mergedWrite is a write with the suffix of its key.
type mergedWrite struct {
	suffix string
	pendingWrite
}

func newMerge(writes map[string]pendingWrite, reverse bool, after string) *merge {
	m := &merge{writes: writes, reverse: reverse}
	for suffix := range writes {
		if after != "" && m.compare(after, suffix) >= 0 {
			continue
		}
		m.suffixes = append(m.suffixes, suffix)
	}
	slices.SortFunc(m.suffixes, m.compare)
	return m
}

func (m *merge) compare(a, b string) int {
	if m.reverse {
		return strings.Compare(b, a)
	}
	return strings.Compare(a, b)
}

// before returns the uncommitted writes that come before suffix, once.
func (m *merge) before(suffix string) []mergedWrite {
	n := 0
	for n < len(m.suffixes) && m.compare(m.suffixes[n], suffix) < 0 {
		n++
	}
	return m.take(n)
}

// shadows reports whether an uncommitted write replaces the committed pair.
func (m *merge) shadows(suffix string) bool {
	_, ok := m.writes[suffix]
	return ok
}

func (m *merge) rest() []mergedWrite { return m.take(len(m.suffixes)) }

func (m *merge) take(n int) []mergedWrite {
	var writes []mergedWrite
	for _, suffix := range m.suffixes[:n] {
		if w := m.writes[suffix]; !w.deleted {
			writes = append(writes, mergedWrite{suffix, w})
		}
	}
	m.suffixes = m.suffixes[n:]
	return writes
}
