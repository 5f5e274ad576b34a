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
// reverse order, beginning after the ID after, until fn returns false.
func (tx *Tx) Scan(_ context.Context, collection, after string, reverse bool, fn func(sentinels.Document) bool) error {
	if tx.done {
		return errDone
	}
	prefix := documentKey(collection, "")
	var first []byte
	if after != "" {
		first = documentKey(collection, after)
	}
	merged := newMerge(tx.uncommitted(prefix), reverse, after)
	var bad error
	stopped := false
	emit := func(doc sentinels.Document) bool {
		if !fn(doc) {
			stopped = true
		}
		return !stopped
	}
	err := tx.store.opt.Store.Scan(Bucket, prefix, first, reverse, func(key, value []byte) bool {
		id := string(key[len(prefix):])
		for _, doc := range merged.before(id) {
			if !emit(doc) {
				return false
			}
		}
		if merged.shadows(id) {
			return true
		}
		var doc sentinels.Document
		if bad = json.Unmarshal(value, &doc); bad != nil {
			return false
		}
		return emit(doc)
	})
	if err = errors.Join(err, bad); err != nil || stopped {
		return err
	}
	for _, doc := range merged.rest() {
		if !emit(doc) {
			break
		}
	}
	return nil
}

// uncommitted returns the writes below prefix that the store does not have yet, by ID.
func (tx *Tx) uncommitted(prefix []byte) map[string]pendingWrite {
	writes := map[string]pendingWrite{}
	collect := func(from map[string]pendingWrite) {
		for key, w := range from {
			if id, ok := strings.CutPrefix(key, string(prefix)); ok {
				writes[id] = w
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
// documents, in one order.
type merge struct {
	writes  map[string]pendingWrite
	ids     []string // of writes, in scan order
	reverse bool
}

func newMerge(writes map[string]pendingWrite, reverse bool, after string) *merge {
	m := &merge{writes: writes, reverse: reverse}
	for id := range writes {
		if after != "" && m.compare(after, id) >= 0 {
			continue
		}
		m.ids = append(m.ids, id)
	}
	slices.SortFunc(m.ids, m.compare)
	return m
}

func (m *merge) compare(a, b string) int {
	if m.reverse {
		return strings.Compare(b, a)
	}
	return strings.Compare(a, b)
}

// before returns the uncommitted documents that come before id, once.
func (m *merge) before(id string) []sentinels.Document {
	n := 0
	for n < len(m.ids) && m.compare(m.ids[n], id) < 0 {
		n++
	}
	return m.take(n)
}

// shadows reports whether an uncommitted write replaces the committed id.
func (m *merge) shadows(id string) bool {
	_, ok := m.writes[id]
	return ok
}

func (m *merge) rest() []sentinels.Document { return m.take(len(m.ids)) }

func (m *merge) take(n int) []sentinels.Document {
	var docs []sentinels.Document
	for _, id := range m.ids[:n] {
		if w := m.writes[id]; !w.deleted {
			docs = append(docs, w.doc)
		}
	}
	m.ids = m.ids[n:]
	return docs
}
