package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A Lost is a part of a database file that cannot be read. It had the keys of a
// bucket from From, inclusive, to To, exclusive; nil means no bound. If Bucket
// is empty, all buckets with names in that range are lost.
type Lost struct {
	Bucket   string
	From, To []byte
	Values   int    // number of pairs in it whose checksum does not match
	Why      string // description with the page number, for people

	onlySums bool // nothing but those checksums is wrong
}

// contains reports whether a key lies in the range.
func (l *Lost) contains(key []byte) bool {
	return bytes.Compare(key, l.From) >= 0 && (l.To == nil || bytes.Compare(key, l.To) < 0)
}

// covers reports whether the pair of a bucket with a key is in the part.
func (l *Lost) covers(bucket string, key []byte) bool {
	return l.Bucket == bucket && l.contains(key) || l.Bucket == "" && l.contains([]byte(bucket))
}

// A pageVisitor receives what a walk finds, in the order of buckets and keys.
// Slices are valid only during the call. An error stops the walk.
type pageVisitor struct {
	bucket func(name string) error                // called at the start of a bucket; optional
	pair   func(bucket string, k, v []byte) error // called for a pair whose checksum matches, v without it; optional
	lost   func(Lost) error
}

// walk visits every pair that can be read, and every range of keys that cannot.
func (p *pageFile) walk(visit pageVisitor) error {
	w := &pageWalk{pages: p, visit: visit}
	for id := range uint64(2) {
		if err := p.checkMetaHeader(id); err != nil {
			if err := w.reportWrong("%v", err); err != nil {
				return err
			}
		}
	}
	var free pageSet
	if p.meta.freelist != noFreelist {
		var err error
		if free, err = p.freePages(); err != nil {
			if err := w.reportWrong("%v", err); err != nil {
				return err
			}
		}
	}
	if err := w.page(p.meta.root, nil, nil, 0); err != nil {
		return err
	}
	for i := range free {
		if both := free[i] & p.seen[i]; both != 0 {
			return w.reportWrong("page %d is in use and listed as free", 64*i+bits.TrailingZeros64(both))
		}
	}
	return nil
}

type pageWalk struct {
	pages  *pageFile
	visit  pageVisitor
	bucket string // current bucket; "" is the tree of buckets
}

// reportWrong reports damage that loses no keys.
func (w *pageWalk) reportWrong(format string, args ...any) error {
	return w.reportLost([]byte{}, []byte{}, format, args...)
}

func (w *pageWalk) reportLost(from, to []byte, format string, args ...any) error {
	return w.reportLostValues(0, false, from, to, format, args...)
}

func (w *pageWalk) reportLostValues(n int, onlySums bool, from, to []byte, format string, args ...any) error {
	return w.visit.lost(Lost{Bucket: w.bucket, From: bytes.Clone(from), To: bytes.Clone(to), Values: n, Why: fmt.Sprintf(format, args...), onlySums: onlySums})
}

// page visits the tree below a page, whose keys lie between lo and hi.
func (w *pageWalk) page(id uint64, lo, hi []byte, depth int) error {
	// Without a usable page all pages below it are lost, because no other page
	// refers to them.
	pg, err := w.pages.read(id)
	if err == nil {
		defer w.pages.release(pg)
	}
	if err == nil && pg.wrong != "" {
		if err := w.reportWrong("%s", pg.wrong); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return w.reportLost(lo, hi, "%v", err)
	case depth > maxDepth:
		return w.reportLost(lo, hi, "page %d lies too deep in its tree", id)
	case pg.flags == pageLeaf:
		return w.leaf(pg, lo, hi)
	case pg.flags == pageBranch && pg.count > 0:
		return w.branch(pg, lo, hi, depth)
	}
	return w.reportLost(lo, hi, "page %d is neither a leaf nor a branch", id)
}

// branch visits the children of a page in order. The keys of a child lie
// between its own key in the branch and that of the next element. So an
// unusable element loses the keys up to the next usable one.
func (w *pageWalk) branch(pg dbPage, lo, hi []byte, depth int) error {
	list := pg.elements()
	w.checkOrder(list, lo, hi)
	from := lo
	for i := 0; i < len(list); {
		if list[i].bad {
			next, to := nextGood(list, i, hi)
			if err := w.reportLost(from, to, "page %d: elements %d to %d of the branch are damaged", pg.id, i, next-1); err != nil {
				return err
			}
			i = next
			continue
		}
		to := hi
		if i+1 < len(list) {
			to = list[i+1].key
			if list[i+1].bad {
				// The upper bound of the child is unknown. Keys behind its last
				// one are lost; it may have keys up to hi.
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

// nextGood returns the index of the first usable element behind i, and its key,
// hi if there is none.
func nextGood(list []element, i int, hi []byte) (next int, to []byte) {
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

// leaf visits the pairs of a page, or the buckets if it is in the tree of
// buckets.
func (w *pageWalk) leaf(pg dbPage, lo, hi []byte) error {
	list := pg.elements()
	w.checkSums(list)
	w.checkOrder(list, lo, hi)
	from := lo // behind the last usable key
	for i := 0; i < len(list); {
		if !list[i].bad {
			if err := w.visitElement(list[i]); err != nil {
				return err
			}
			from = append(bytes.Clone(list[i].key), 0)
			i++
			continue
		}
		next, to := nextGood(list, i, hi)
		if err := w.reportLostElements(pg.id, list, i, next, from, to); err != nil {
			return err
		}
		i = next
	}
	return nil
}

// reportLostElements reports the elements first to next-1 of a leaf as lost.
// The damage may be in the key as well as in the value, so all keys between the
// neighbours are lost.
func (w *pageWalk) reportLostElements(page uint64, list []element, first, next int, from, to []byte) error {
	values := 0
	for _, e := range list[first:next] {
		if e.badChecksum {
			values++
		}
	}
	if next == first+1 && values == 1 {
		return w.reportLostValues(1, true, from, to, "key %s: page %d: the checksum of the value does not match", keyText(w.bucket, list[first].key), page)
	}
	return w.reportLostValues(values, values == next-first, from, to, "page %d: elements %d to %d of the leaf are damaged", page, first, next-1)
}

// checkSums marks elements as unusable whose checksum does not match, and
// removes the checksum from the values of the others.
func (w *pageWalk) checkSums(list []element) {
	if w.bucket == "" {
		return // these are buckets
	}
	for i := range list {
		e := &list[i]
		if e.bad {
			continue
		}
		value, ok := splitChecksum(w.bucket, e.key, e.value)
		e.bad, e.badChecksum, e.value = !ok, !ok, value
	}
}

// checkOrder marks elements as unusable whose keys are not between lo and hi or
// not in ascending order. Of two elements in the wrong order the earlier one is
// unusable if the later one fits without it.
func (w *pageWalk) checkOrder(list []element, lo, hi []byte) {
	last, before := -1, -1 // usable so far
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

// visitElement visits a pair, or a bucket with all its pairs.
func (w *pageWalk) visitElement(e element) error {
	if w.bucket != "" {
		if w.visit.pair == nil {
			return nil
		}
		return w.visit.pair(w.bucket, e.key, e.value)
	}
	if e.flags != elementBucket || len(e.value) < bucketHeader {
		return w.reportLost(e.key, append(bytes.Clone(e.key), 0), "the element of bucket %q is damaged", e.key)
	}
	w.bucket = string(e.key)
	defer func() { w.bucket = "" }()
	if w.visit.bucket != nil {
		if err := w.visit.bucket(w.bucket); err != nil {
			return err
		}
	}
	// The store has no nested buckets: checkOrder has marked them as unusable.
	root := binary.NativeEndian.Uint64(e.value)
	if root != 0 {
		return w.page(root, nil, nil, 0)
	}
	return w.inline(e.value[bucketHeader:])
}

// inline visits a small bucket, whose only page lies in its element.
func (w *pageWalk) inline(data []byte) error {
	if len(data) < pageHeader {
		return w.reportLost(nil, nil, "bucket %q is damaged: it has no page", w.bucket)
	}
	order := binary.NativeEndian
	pg := dbPage{flags: order.Uint16(data[8:]), count: int(order.Uint16(data[10:])), data: data, buf: &pageBuffer{}}
	if pg.flags != pageLeaf || pageHeader+pageElement*pg.count > len(data) {
		return w.reportLost(nil, nil, "bucket %q is damaged: its inline page is not a leaf", w.bucket)
	}
	return w.leaf(pg, nil, nil)
}
