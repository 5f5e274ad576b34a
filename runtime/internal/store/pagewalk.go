package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A Lost range is a part of a database file that cannot be read. What it held
// lay in the bucket between From, inclusive, and To, exclusive; nil is no
// bound. Without a bucket name whole buckets are lost, whose names lay between.
type Lost struct {
	Bucket   string
	From, To []byte
	Why      string // for people, names the page
}

// holds reports whether a key lies in the range.
func (l *Lost) holds(key []byte) bool {
	return bytes.Compare(key, l.From) >= 0 && (l.To == nil || bytes.Compare(key, l.To) < 0)
}

// A pageVisitor is told what a walk finds, in the order of buckets and keys.
// Slices are valid only during the call. An error ends the walk.
type pageVisitor struct {
	bucket func(name string) error                // a bucket begins; nil is not called
	pair   func(bucket string, k, v []byte) error // nil is not called
	lost   func(Lost) error
}

// walk visits every pair of the file that can be read, and every range of keys
// that cannot.
func (p *pageFile) walk(visit pageVisitor) error {
	w := &pageWalk{pages: p, visit: visit}
	for id := range uint64(2) {
		if err := p.readHead(id); err != nil {
			if err := visit.lost(Lost{From: []byte{}, To: []byte{}, Why: err.Error()}); err != nil {
				return err
			}
		}
	}
	if p.meta.freelist != noFreelist {
		if pg, err := p.read(p.meta.freelist); err != nil || pg.flags != pageFreelist {
			if err == nil {
				err = fmt.Errorf("page %d is no list of free pages", p.meta.freelist)
			}
			if err := visit.lost(Lost{From: []byte{}, To: []byte{}, Why: err.Error()}); err != nil {
				return err
			}
		}
	}
	return w.page(p.meta.root, nil, nil, 0)
}

type pageWalk struct {
	pages  *pageFile
	visit  pageVisitor
	bucket string // being walked; "" is the tree of buckets
}

func (w *pageWalk) lose(from, to []byte, format string, args ...any) error {
	return w.visit.lost(Lost{Bucket: w.bucket, From: bytes.Clone(from), To: bytes.Clone(to), Why: fmt.Sprintf(format, args...)})
}

// page visits the tree below a page, whose keys lie between lo and hi.
func (w *pageWalk) page(id uint64, lo, hi []byte, depth int) error {
	// A page that is not what it should be takes all below it along: where its
	// children are stands nowhere else.
	pg, err := w.pages.read(id)
	switch {
	case err != nil:
		return w.lose(lo, hi, "%v", err)
	case depth > maxDepth:
		return w.lose(lo, hi, "page %d lies deeper than any tree is", id)
	case pg.flags == pageLeaf:
		return w.leaf(pg, lo, hi)
	case pg.flags == pageBranch && pg.count > 0:
		return w.branch(pg, lo, hi, depth)
	}
	return w.lose(lo, hi, "page %d is neither leaf nor branch", id)
}

// branch visits the children of a page in order. A child's keys lie between
// its own key in the branch and that of the next, so an element that cannot be
// read loses the keys up to the next one that can.
func (w *pageWalk) branch(pg dbPage, lo, hi []byte, depth int) error {
	list := pg.elements()
	w.order(list, lo, hi)
	from := lo
	for i := 0; i < len(list); {
		if list[i].bad {
			next, to := badUntil(list, i, hi)
			if err := w.lose(from, to, "page %d: elements %d to %d of the branch are damaged", pg.id, i, next-1); err != nil {
				return err
			}
			i = next
			continue
		}
		to := hi
		if i+1 < len(list) {
			to = list[i+1].key
			if list[i+1].bad {
				// Where the child ends is not known, so what follows it is
				// lost from its last key on. It may have keys of its own up to hi.
				to = firstGood(list[i+1:], hi)
			}
		}
		if err := w.page(list[i].child, list[i].key, to, depth+1); err != nil {
			return err
		}
		from = list[i].key
		i++
	}
	return nil
}

// badUntil returns where the bad elements that begin at i end, and the first key
// behind them, hi if there is none.
func badUntil(list []element, i int, hi []byte) (next int, to []byte) {
	for next = i + 1; next < len(list); next++ {
		if !list[next].bad {
			return next, list[next].key
		}
	}
	return next, hi
}

func firstGood(list []element, hi []byte) []byte {
	for i := range list {
		if !list[i].bad {
			return list[i].key
		}
	}
	return hi
}

// leaf visits the pairs of a page, or the buckets of one in the tree of buckets.
func (w *pageWalk) leaf(pg dbPage, lo, hi []byte) error {
	list := pg.elements()
	w.order(list, lo, hi)
	from := lo // behind the last good key
	for i := 0; i < len(list); {
		if !list[i].bad {
			if err := w.entry(list[i]); err != nil {
				return err
			}
			from = append(bytes.Clone(list[i].key), 0)
			i++
			continue
		}
		next, to := badUntil(list, i, hi)
		if err := w.lose(from, to, "page %d: elements %d to %d of the leaf are damaged", pg.id, i, next-1); err != nil {
			return err
		}
		i = next
	}
	return nil
}

// order marks the elements bad whose keys are not between lo and hi or do not
// follow the one before. Where two are in the wrong order, the earlier one is
// to blame if the later one would follow without it.
func (w *pageWalk) order(list []element, lo, hi []byte) {
	last, before := -1, -1 // good so far
	key := func(i int) []byte {
		if i < 0 {
			return nil
		}
		return list[i].key
	}
	for i := range list {
		e := &list[i]
		if e.bad {
			continue
		}
		outside := lo != nil && bytes.Compare(e.key, lo) < 0 || hi != nil && bytes.Compare(e.key, hi) >= 0
		if outside || w.bucket != "" && e.flags != 0 || e.flags > elementBucket {
			e.bad = true
			continue
		}
		switch {
		case last < 0 || bytes.Compare(key(last), e.key) < 0:
			before, last = last, i
		case before < 0 && bytes.Compare(e.key, lo) > 0 || before >= 0 && bytes.Compare(key(before), e.key) < 0:
			list[last].bad = true
			last = i
		default:
			e.bad = true
		}
	}
}

// entry visits a pair, or a bucket with all its pairs.
func (w *pageWalk) entry(e element) error {
	if w.bucket != "" {
		if w.visit.pair == nil {
			return nil
		}
		return w.visit.pair(w.bucket, e.key, e.value)
	}
	if e.flags != elementBucket || len(e.value) < bucketHeader {
		return w.lose(e.key, append(bytes.Clone(e.key), 0), "the entry of bucket %q is damaged", e.key)
	}
	w.bucket = string(e.key)
	defer func() { w.bucket = "" }()
	if w.visit.bucket != nil {
		if err := w.visit.bucket(w.bucket); err != nil {
			return err
		}
	}
	// Buckets in buckets are not ours: order has marked them bad.
	root := binary.NativeEndian.Uint64(e.value)
	if root != 0 {
		return w.page(root, nil, nil, 0)
	}
	return w.inline(e.value[bucketHeader:])
}

// inline visits a small bucket, whose only page lies in its entry.
func (w *pageWalk) inline(data []byte) error {
	if len(data) < pageHeader {
		return w.lose(nil, nil, "bucket %q is damaged: it has no page", w.bucket)
	}
	order := binary.NativeEndian
	pg := dbPage{flags: order.Uint16(data[8:]), count: int(order.Uint16(data[10:])), data: data}
	if pg.flags != pageLeaf || pageHeader+pageElement*pg.count > len(data) {
		return w.lose(nil, nil, "bucket %q is damaged: its page in the entry is no leaf", w.bucket)
	}
	return w.leaf(pg, nil, nil)
}
