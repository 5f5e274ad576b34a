package document

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// BucketIndex is where the entries of indexes are in the store: collection \x00 index
// \x00 ordered values, ID -> ID; and the version of each index under its name alone.
const BucketIndex = "documentindex"

// An Index orders documents of a collection by values of theirs. Its entries are
// written in the commit of their document.
type Index struct {
	Collection string
	Name       string
	// Version is raised when Values changes: the index is then built again.
	Version int
	// Values returns the entries of a document, each with the values to order by: nil,
	// bool, int, int64, time.Time, string or [Descending]. All entries have the same
	// number of values, with one type at each place. A document without entries is not
	// in the index.
	Values func(sentinels.Document) [][]any
}

// A Range is a part of an index.
type Range struct {
	Equal    []any  // values of the first fields
	From, To []any  // limits of the fields behind them: from the first on, and before the second
	After    string // behind this position, from an earlier scan
	Reverse  bool
	Limit    int // 0 is all
}

// indexPage is how many entries are read in one transaction of the store.
const indexPage = 64

func (x *Index) prefix() []byte { return []byte(x.Collection + "\x00" + x.Name + "\x00") }

// entryMark tells keys of entries from keys of documents in maps of writes: no
// collection begins with it.
const entryMark = "\xff"

// Register adds indexes, and builds those that the store does not have in this
// version. It must be called before the first transaction.
func (s *Store) Register(ctx context.Context, indexes ...*Index) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, x := range indexes {
		for _, have := range s.indexes[x.Collection] {
			if have.Name == x.Name {
				return failure.New(abi.Internal, "documents: collection %q has two indexes %q", x.Collection, x.Name)
			}
		}
		if s.indexes == nil {
			s.indexes = map[string][]*Index{}
		}
		s.indexes[x.Collection] = append(s.indexes[x.Collection], x)
		if err := s.build(ctx, x); err != nil {
			return fmt.Errorf("build index %q of %q: %w", x.Name, x.Collection, err)
		}
	}
	return nil
}

// build writes the entries of an index, unless the store has them. Its version comes
// last, so that an interrupted build begins again.
func (s *Store) build(ctx context.Context, x *Index) error {
	marker := []byte(x.Collection + "\x00" + x.Name)
	version := strconv.Itoa(x.Version)
	have, _, err := s.opt.Store.Get(BucketIndex, marker)
	if err != nil || string(have) == version {
		return err
	}
	if err := s.rewrite(ctx, BucketIndex, x.prefix(), func(key, _ []byte) ([]store.Put, error) {
		return []store.Put{{Bucket: BucketIndex, Key: key, Delete: true}}, nil
	}); err != nil {
		return err
	}
	if err := s.rewrite(ctx, Bucket, documentKey(x.Collection, ""), func(_, value []byte) ([]store.Put, error) {
		var doc sentinels.Document
		if err := json.Unmarshal(value, &doc); err != nil {
			return nil, err
		}
		entries, err := x.entries(doc)
		var puts []store.Put
		for key := range entries {
			puts = append(puts, store.Put{Bucket: BucketIndex, Key: []byte(key), Value: []byte(doc.ID)})
		}
		return puts, err
	}); err != nil {
		return err
	}
	return s.opt.Store.Enqueue(store.Batch{Puts: []store.Put{{Bucket: BucketIndex, Key: marker, Value: []byte(version)}}}).Wait(ctx)
}

// rewrite commits what fn makes of each pair below prefix, in batches.
func (s *Store) rewrite(ctx context.Context, bucket string, prefix []byte, fn func(key, value []byte) ([]store.Put, error)) error {
	var after []byte
	for {
		var puts []store.Put
		var bad error
		n := 0
		err := s.opt.Store.Scan(bucket, prefix, after, false, func(key, value []byte) bool {
			after = join(key, nil)
			var more []store.Put
			if more, bad = fn(after, value); bad != nil {
				return false
			}
			puts = append(puts, more...)
			n++
			return n < 500
		})
		if err == nil {
			err = bad
		}
		if err == nil && len(puts) > 0 {
			err = s.opt.Store.Enqueue(store.Batch{Puts: puts}).Wait(ctx)
		}
		if err != nil || n < 500 {
			return err
		}
	}
}

// entries returns the keys of a document's entries.
func (x *Index) entries(doc sentinels.Document) (map[string]bool, error) {
	keys := map[string]bool{}
	for _, values := range x.Values(doc) {
		key, err := appendOrdered(x.prefix(), values...)
		if err != nil {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true,
				Message: fmt.Sprintf("document %q of %q: index %q: %v", doc.ID, x.Collection, x.Name, err)}
		}
		keys[string(append(key, doc.ID...))] = true
	}
	return keys, nil
}

// reindex writes the entries that differ between two states of a document, nil where
// there is none.
func (tx *Tx) reindex(old, now *sentinels.Document) error {
	doc := now
	if doc == nil {
		doc = old
	}
	for _, x := range tx.store.indexes[doc.Collection] {
		before, after := map[string]bool{}, map[string]bool{}
		var err error
		if old != nil {
			before, err = x.entries(*old)
		}
		if now != nil && err == nil {
			after, err = x.entries(*now)
		}
		if err != nil {
			return err
		}
		for key := range before {
			if !after[key] {
				tx.entry(key, doc.ID, true)
			}
		}
		for key := range after {
			if !before[key] {
				tx.entry(key, doc.ID, false)
			}
		}
	}
	return nil
}

func (tx *Tx) entry(key, id string, remove bool) {
	tx.wrote[entryMark+key] = pendingWrite{doc: sentinels.Document{ID: id}, deleted: remove}
	put := store.Put{Bucket: BucketIndex, Key: []byte(key), Delete: remove}
	if !remove {
		put.Value = []byte(id)
	}
	tx.puts = append(tx.puts, put)
}

// ScanIndex calls fn for the documents of a part of an index, in its order, until fn
// returns false. A document with several entries comes once for each. position goes
// into [Range.After] of the next scan. fn may read and write: a document that it moves
// behind the position of the scan may come again. A scan ends with ctx.
func (tx *Tx) ScanIndex(ctx context.Context, x *Index, r Range, fn func(position string, doc sentinels.Document) bool) error {
	if tx.done {
		return errDone
	}
	part, err := x.part(r)
	if err != nil {
		return err
	}
	left := r.Limit
	for {
		page, err := tx.entriesOf(part, r.Reverse)
		if err != nil {
			return err
		}
		for _, e := range page {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			w, err := tx.lookupWrite(documentKey(x.Collection, e.id))
			if err != nil {
				return err
			}
			if w.deleted { // by fn, or beside a transaction that only reads
				continue
			}
			if !fn(base64.RawURLEncoding.EncodeToString([]byte(e.suffix)), w.doc) {
				return nil
			}
			if err := tx.counted(w.size); err != nil {
				return err
			}
			if left--; left == 0 {
				return nil
			}
		}
		if len(page) < indexPage {
			return nil
		}
		part.after = page[len(page)-1].suffix
	}
}

// A part is a range of an index as keys.
type part struct {
	prefix   []byte // of all keys of the index
	below    []byte // of the keys with the equal values
	from, to []byte // whole keys; nil for open
	after    string // suffix of a key behind prefix
}

func (x *Index) part(r Range) (part, error) {
	p := part{prefix: x.prefix()}
	var err error
	limit := func(values []any) []byte {
		if len(values) == 0 || err != nil {
			return nil
		}
		var key []byte
		key, err = appendOrdered(join(p.below, nil), values...)
		return key
	}
	if p.below, err = appendOrdered(x.prefix(), r.Equal...); err == nil {
		p.from, p.to = limit(r.From), limit(r.To)
	}
	if err != nil {
		return p, failure.New(abi.BadFields, "index %q of %q: %v", x.Name, x.Collection, err)
	}
	if r.After != "" {
		raw, bad := base64.RawURLEncoding.DecodeString(r.After)
		if bad != nil {
			return p, failure.New(abi.BadFields, "after: %q is not a position in index %q", r.After, x.Name)
		}
		if p.after = string(raw); !bytes.HasPrefix(join(p.prefix, raw), p.below) {
			return p, failure.New(abi.BadFields, "after: the position %q is of another part of index %q", r.After, x.Name)
		}
	}
	return p, nil
}

// An indexEntry is one entry as it was read.
type indexEntry struct{ suffix, id string }

// entriesOf reads the next page of a part. A scan of the store has ended when it
// returns: the documents are read afterwards, since a transaction of the store in
// another one can wait for ever.
func (tx *Tx) entriesOf(p part, reverse bool) ([]indexEntry, error) {
	// Every key is longer than its values, as the ID is behind them. So the keys
	// behind a limit include those that have its values.
	first := p.from
	if reverse {
		first = p.to
	}
	if p.after != "" {
		first = join(p.prefix, []byte(p.after))
	}
	var page []indexEntry
	after := ""
	if first != nil {
		after = string(first[len(p.below):])
	}
	err := tx.merged(area{bucket: BucketIndex, mark: entryMark, prefix: p.below}, after, reverse, func(suffix string, value []byte, w *pendingWrite) (bool, error) {
		key := join(p.below, []byte(suffix))
		if !within(key, p.from, p.to) {
			return false, nil
		}
		id := string(value)
		if w != nil {
			id = w.doc.ID
		}
		page = append(page, indexEntry{suffix: string(key[len(p.prefix):]), id: id})
		return len(page) < indexPage, nil
	})
	return page, err
}
