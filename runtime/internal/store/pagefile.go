package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"slices"
)

// The layout of bbolt's files, version 2, in the byte order of the machine.
// Every page begins with a header: id, flags, count, overflow.
const (
	pageHeader  = 16
	pageElement = 16 // same size in branches and leaves
	metaBytes   = 64

	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageMeta     = 0x04
	pageFreelist = 0x10

	elementBucket = 0x01 // flag of a leaf element that is a bucket
	bucketHeader  = 16   // root page, sequence

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreelist  = ^uint64(0)

	maxDepth = 64 // of a tree; one with 10^12 pairs has fewer than 12 levels
)

// A pageFile reads a database file page by page and validates everything that
// it reads: no content of the file can crash the process. bbolt itself maps its
// file and follows its references, so damage can cause signals that cannot be
// caught. A pageFile is not safe for concurrent use.
type pageFile struct {
	file     io.ReaderAt
	size     int64 // size of the file in bytes
	page     int64 // size of a page in bytes
	meta     metaPage
	bothMeta bool    // both meta pages are sound, and of two successive commits
	seen     pageSet // pages that were referenced
	spare    []*pageBuffer
}

// A pageBuffer is the memory of a page that is being visited. A walk needs one
// for each level of a tree.
type pageBuffer struct {
	head []byte // the first page, without overflow pages
	list []element
}

// metaPage is a meta page: the root of the state after one transaction.
type metaPage struct {
	pageSize uint32
	root     uint64
	freelist uint64
	end      uint64 // first page that was never used
	txid     uint64
}

// openPages finds the newest sound meta page. If both are damaged, live data
// cannot be distinguished from deleted data. If the file is truncated,
// openPages returns both an error and a pageFile that reads what is left.
func openPages(file io.ReaderAt, size int64) (*pageFile, error) {
	p := &pageFile{file: file, size: size}
	first, ok, err := p.readMeta(0)
	second := metaPage{}
	also := false
	if ok {
		second, also, err = p.readMeta(int64(first.pageSize))
	} else {
		for page := int64(1 << 10); page <= 64<<10 && !also && err == nil; page *= 2 {
			second, also, err = p.readMeta(page)
		}
	}
	if err != nil {
		return nil, err
	}
	// Commits alternate between the two pages, so the higher number is the
	// newer state. If one is torn, the other is a complete state, one commit
	// older.
	// A gap between the two numbers means that one commit did not reach the disk,
	// or that one page is an old version of itself.
	switch {
	case ok && also && second.txid > first.txid:
		p.meta, p.bothMeta = second, second.txid == first.txid+1
	case ok:
		p.meta, p.bothMeta = first, also && second.txid+1 == first.txid
	case also:
		p.meta = second
	default:
		return nil, fmt.Errorf("both meta pages are damaged, or the file is not a database")
	}
	p.page = int64(p.meta.pageSize)
	if pages := uint64(size / p.page); p.meta.end > pages {
		err := fmt.Errorf("the file is truncated: it has %d pages of %d bytes, %d are in use", pages, p.page, p.meta.end)
		p.meta.end = pages // so that nothing behind the end is read or allocated
		return p, err
	}
	return p, nil
}

// readMeta reads the meta page at a place. It returns false for one that is torn, and an error for
// one whose checksum is right and whose fields are not: the database library would take it.
func (p *pageFile) readMeta(at int64) (m metaPage, ok bool, err error) {
	var b [pageHeader + metaBytes]byte
	if _, err := p.file.ReadAt(b[:], at); err != nil {
		return m, false, nil
	}
	order := binary.NativeEndian
	body := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(body[:metaBytes-8]) // never returns an error
	if order.Uint32(body) != metaMagic || order.Uint32(body[4:]) != metaVersion || order.Uint64(body[56:]) != sum.Sum64() {
		return m, false, nil
	}
	m = metaPage{
		pageSize: order.Uint32(body[8:]), root: order.Uint64(body[16:]), freelist: order.Uint64(body[32:]),
		end: order.Uint64(body[40:]), txid: order.Uint64(body[48:]),
	}
	if m.pageSize < 1<<10 || m.pageSize > 64<<10 || m.pageSize&(m.pageSize-1) != 0 || m.end >= 1<<40 || at != 0 && int64(m.pageSize) != at {
		return m, false, fmt.Errorf("the meta page at byte %d is forged: its checksum is right, with pages of %d bytes and an end at page %d", at, m.pageSize, m.end)
	}
	return m, true, nil
}

// checkMetaHeader checks the header of a meta page. Its body may be torn if the
// power failed during a commit; its header never changes.
func (p *pageFile) checkMetaHeader(id uint64) error {
	var b [pageHeader]byte
	if _, err := p.file.ReadAt(b[:], int64(id)*p.page); err != nil {
		return fmt.Errorf("meta page %d cannot be read: %w", id, err)
	}
	order := binary.NativeEndian
	if order.Uint64(b[:]) != id || order.Uint16(b[8:]) != pageMeta {
		return fmt.Errorf("meta page %d has a wrong header", id)
	}
	return nil
}

// A dbPage is one page with its overflow pages.
type dbPage struct {
	id    uint64
	flags uint16
	count int
	data  []byte // including the header
	wrong string // what is wrong although the page can be read, for people
	buf   *pageBuffer
}

// read returns a referenced page, which is valid until its release. It returns an error if the page as a whole is
// wrong: its number, its kind, its length, or a second reference to it.
func (p *pageFile) read(id uint64) (pg dbPage, err error) {
	if id < 2 || id >= p.meta.end {
		return pg, fmt.Errorf("page %d is outside of the pages 2 to %d of the file", id, p.meta.end)
	}
	buf := p.takeBuffer()
	head := buf.head
	if _, err := p.file.ReadAt(head, int64(id)*p.page); err != nil {
		return pg, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	order := binary.NativeEndian
	pg = dbPage{id: id, flags: order.Uint16(head[8:]), count: int(order.Uint16(head[10:])), data: head, buf: buf}
	overflow := uint64(order.Uint32(head[12:]))
	switch stored := order.Uint64(head); {
	case stored != id:
		return pg, fmt.Errorf("page %d has the number %d", id, stored)
	case pg.flags != pageBranch && pg.flags != pageLeaf && pg.flags != pageFreelist:
		return pg, fmt.Errorf("page %d has an unknown kind %#x", id, pg.flags)
	}
	// bbolt gives a page exactly the overflow pages that its elements fill, and
	// frees as many as the header says. The smaller of the two is read, so that
	// one damaged number neither loses the page nor decides how much memory is
	// used.
	if fill := p.overflowOf(pg); pg.flags != pageFreelist && fill != overflow {
		pg.wrong = fmt.Sprintf("page %d claims %d overflow pages, its elements fill %d", id, overflow, fill)
		overflow = min(overflow, fill)
	}
	if overflow >= p.meta.end-id {
		return pg, fmt.Errorf("page %d extends over the end of the file", id)
	}
	// A page has one place in one tree. This check also ends cycles, and bounds
	// the work of a walk by the size of the file.
	for i := id; i <= id+overflow; i++ {
		if !p.markUsed(i) {
			return pg, fmt.Errorf("page %d is referenced twice", i)
		}
	}
	if overflow > 0 {
		pg.data = make([]byte, (1+int64(overflow))*p.page)
		if _, err := p.file.ReadAt(pg.data, int64(id)*p.page); err != nil {
			return pg, fmt.Errorf("page %d cannot be read: %w", id, err)
		}
	}
	if pg.flags != pageFreelist && pageHeader+pageElement*pg.count > len(pg.data) {
		return pg, fmt.Errorf("page %d claims %d elements, more than fit in it", id, pg.count)
	}
	return pg, nil
}

func (p *pageFile) takeBuffer() *pageBuffer {
	n := len(p.spare)
	if n == 0 {
		return &pageBuffer{head: make([]byte, p.page)}
	}
	buf := p.spare[n-1]
	p.spare = p.spare[:n-1]
	return buf
}

// release lets the next page use the memory of pg.
func (p *pageFile) release(pg dbPage) { p.spare = append(p.spare, pg.buf) }

// overflowOf returns how many overflow pages the elements of a page fill, given
// its first page.
func (p *pageFile) overflowOf(pg dbPage) uint64 {
	if pg.count == 0 {
		return 0
	}
	at := int64(pageHeader + pageElement*(pg.count-1))
	last := make([]byte, pageElement)
	if at+pageElement <= p.page {
		last = pg.data[at : at+pageElement]
	} else if _, err := p.file.ReadAt(last, int64(pg.id)*p.page+at); err != nil {
		return 0 // behind the end of the file
	}
	order := binary.NativeEndian
	end := uint64(at)
	if pg.flags == pageLeaf {
		end += uint64(order.Uint32(last[4:])) + uint64(order.Uint32(last[8:])) + uint64(order.Uint32(last[12:]))
	} else {
		end += uint64(order.Uint32(last)) + uint64(order.Uint32(last[4:]))
	}
	return (end - 1) / uint64(p.page)
}

// freePages returns the stored list of free pages. bbolt writes a new file with
// an empty one; this program stores none, and finds free pages by reading all
// others.
func (p *pageFile) freePages() (free pageSet, err error) {
	pg, err := p.read(p.meta.freelist)
	if err != nil {
		return nil, err
	}
	if pg.flags != pageFreelist {
		return nil, fmt.Errorf("page %d is not a list of free pages", pg.id)
	}
	order := binary.NativeEndian
	ids, n := pg.data[pageHeader:], uint64(pg.count)
	if n == 0xffff { // a long list has its length in front
		ids, n = ids[8:], order.Uint64(ids)
	}
	if n > uint64(len(ids)/8) {
		return nil, fmt.Errorf("page %d claims %d free pages, more than fit in it", pg.id, n)
	}
	free = make(pageSet, p.meta.end/64+1)
	for i := range n {
		id := order.Uint64(ids[8*i:])
		if id < 2 || id >= p.meta.end {
			return nil, fmt.Errorf("page %d lists page %d as free, which is outside of the pages 2 to %d of the file", pg.id, id, p.meta.end)
		}
		if !free.add(id) {
			return nil, fmt.Errorf("page %d lists page %d as free twice", pg.id, id)
		}
	}
	return free, nil
}

// A pageSet has one bit for each page of a file.
type pageSet []uint64

// add adds a page. It returns false if the set has it already.
func (s pageSet) add(id uint64) bool {
	bit := uint64(1) << (id % 64)
	if s[id/64]&bit != 0 {
		return false
	}
	s[id/64] |= bit
	return true
}

// markUsed records a reference to a page. It returns false if there was one
// before.
func (p *pageFile) markUsed(id uint64) bool {
	if p.seen == nil {
		p.seen = make(pageSet, p.meta.end/64+1)
	}
	return p.seen.add(id)
}

// used returns the number of referenced pages, including the two meta pages.
func (p *pageFile) used() uint64 {
	n := uint64(2)
	for _, word := range p.seen {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

// An element is one item of a leaf or a branch. Its slices belong to the page.
type element struct {
	flags uint32 // of a leaf element
	key   []byte
	value []byte // of a leaf element
	child uint64 // of a branch element
	bad   bool   // unusable

	badChecksum bool // unusable because the checksum of its value does not match
}

// elements decodes a page. bbolt writes keys and values without gaps, so each
// element must begin where the previous one ends. A flipped bit in a position
// or a length thus makes at most that element and one neighbour unusable.
func (pg dbPage) elements() []element {
	order := binary.NativeEndian
	list := slices.Grow(pg.buf.list[:0], pg.count)[:pg.count]
	clear(list)
	pg.buf.list = list
	next := int64(pageHeader + pageElement*pg.count) // where the next element must begin
	for i := range list {
		at := pageHeader + pageElement*i
		e := pg.data[at : at+pageElement]
		var begin, key, value int64
		if pg.flags == pageLeaf {
			list[i].flags = order.Uint32(e)
			begin, key, value = int64(at)+int64(order.Uint32(e[4:])), int64(order.Uint32(e[8:])), int64(order.Uint32(e[12:]))
		} else {
			begin, key, list[i].child = int64(at)+int64(order.Uint32(e)), int64(order.Uint32(e[4:])), order.Uint64(e[8:])
		}
		end := begin + key + value // cannot overflow: each term has 32 bits
		if begin != next {
			list[i].bad = true
			if i > 0 {
				list[i-1].bad = true
			}
		}
		next = end
		if key == 0 || begin < int64(pageHeader+pageElement*pg.count) || end > int64(len(pg.data)) {
			list[i].bad = true
			continue
		}
		list[i].key = pg.data[begin : begin+key : begin+key]
		list[i].value = pg.data[begin+key : end : end]
	}
	return list
}
