package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout of bbolt's files, version 2, in the byte order of the machine.
// Every page begins with a header: id, flags, count, overflow.
const (
	pageHeader  = 16
	pageElement = 16 // of branches and leaves alike
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

	maxDepth = 64 // of a tree; one of 10^12 pairs has less than 12
)

// A pageFile reads a database file page by page and believes nothing that it
// reads: no content of the file can end the process. bbolt itself maps its
// file and follows what is written there, which damage turns into signals that
// cannot be caught. It is not safe for concurrent use.
type pageFile struct {
	file  io.ReaderAt
	size  int64 // bytes of the file
	page  int64 // bytes of a page
	meta  metaPage
	other bool     // the other meta page is sound too
	seen  []uint64 // one bit for each page that something refers to
}

// metaPage is where a transaction's tree begins.
type metaPage struct {
	pageSize uint32
	root     uint64
	freelist uint64
	end      uint64 // the first page that was never used
	txid     uint64
}

// openPages finds the newest sound meta page. Where both are not, nothing of
// the file can be told apart from what was deleted long ago. With the error
// that the file is cut off, p can be read as far as it goes.
func openPages(file io.ReaderAt, size int64) (*pageFile, error) {
	p := &pageFile{file: file, size: size}
	first, ok := p.readMeta(0)
	second := metaPage{}
	also := false
	if ok {
		second, also = p.readMeta(int64(first.pageSize))
	} else {
		for page := int64(1 << 10); page <= 64<<10 && !also; page *= 2 {
			second, also = p.readMeta(page)
			also = also && int64(second.pageSize) == page
		}
	}
	// Commits take the two in turns, so the higher number is the newer state. With
	// one torn the other is a whole state, one commit older.
	switch {
	case ok && also && second.txid > first.txid:
		p.meta, p.other = second, true
	case ok:
		p.meta, p.other = first, also
	case also:
		p.meta = second
	default:
		return nil, fmt.Errorf("both head pages are damaged, or it is no database")
	}
	p.page = int64(p.meta.pageSize)
	if pages := uint64(size / p.page); p.meta.end > pages {
		err := fmt.Errorf("the file is cut off: it has %d pages of %d bytes, %d are in use", pages, p.page, p.meta.end)
		p.meta.end = pages // so nothing is asked for, or room made for, that is not there
		return p, err
	}
	return p, nil
}

func (p *pageFile) readMeta(at int64) (m metaPage, ok bool) {
	var b [pageHeader + metaBytes]byte
	if _, err := p.file.ReadAt(b[:], at); err != nil {
		return m, false
	}
	order := binary.NativeEndian
	body := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(body[:metaBytes-8]) // never fails
	if order.Uint32(body) != metaMagic || order.Uint32(body[4:]) != metaVersion || order.Uint64(body[56:]) != sum.Sum64() {
		return m, false
	}
	m = metaPage{
		pageSize: order.Uint32(body[8:]), root: order.Uint64(body[16:]), freelist: order.Uint64(body[32:]),
		end: order.Uint64(body[40:]), txid: order.Uint64(body[48:]),
	}
	// The sum covers these, so only a file made to deceive has them wrong.
	return m, m.pageSize >= 1<<10 && m.pageSize <= 64<<10 && m.pageSize&(m.pageSize-1) == 0 && m.end < 1<<40
}

// readHead looks at the header of a head page. What it holds may be torn, for
// one that was being written when the power went; its header never changes.
func (p *pageFile) readHead(id uint64) error {
	var b [pageHeader]byte
	if _, err := p.file.ReadAt(b[:], int64(id)*p.page); err != nil {
		return fmt.Errorf("head page %d cannot be read: %w", id, err)
	}
	order := binary.NativeEndian
	if order.Uint64(b[:]) != id || order.Uint16(b[8:]) != pageMeta {
		return fmt.Errorf("head page %d is none", id)
	}
	return nil
}

// A dbPage is one page with its overflow, as read.
type dbPage struct {
	id    uint64
	flags uint16
	count int
	data  []byte // header included
}

// read returns a page that something refers to. Whatever is wrong with it as a
// whole is an error: its number, its kind, its length, a second reference.
func (p *pageFile) read(id uint64) (pg dbPage, err error) {
	if id < 2 || id >= p.meta.end {
		return pg, fmt.Errorf("page %d is outside of the file's pages 2 to %d", id, p.meta.end)
	}
	head := make([]byte, p.page)
	if _, err := p.file.ReadAt(head, int64(id)*p.page); err != nil {
		return pg, fmt.Errorf("page %d cannot be read: %w", id, err)
	}
	order := binary.NativeEndian
	pg = dbPage{id: id, flags: order.Uint16(head[8:]), count: int(order.Uint16(head[10:])), data: head}
	overflow := uint64(order.Uint32(head[12:]))
	switch own := order.Uint64(head); {
	case own != id:
		return pg, fmt.Errorf("page %d says that it is page %d", id, own)
	case pg.flags != pageBranch && pg.flags != pageLeaf && pg.flags != pageFreelist:
		return pg, fmt.Errorf("page %d is of no known kind: %#x", id, pg.flags)
	case id+overflow >= p.meta.end:
		return pg, fmt.Errorf("page %d goes on over the end of the file", id)
	}
	// Each page has one place in one tree. This also ends every circle, and bounds
	// what a walk reads by the size of the file.
	for i := id; i <= id+overflow; i++ {
		if !p.mark(i) {
			return pg, fmt.Errorf("page %d is referred to twice", i)
		}
	}
	if overflow > 0 {
		pg.data = make([]byte, (1+int64(overflow))*p.page)
		if _, err := p.file.ReadAt(pg.data, int64(id)*p.page); err != nil {
			return pg, fmt.Errorf("page %d cannot be read: %w", id, err)
		}
	}
	if pageHeader+pageElement*pg.count > len(pg.data) {
		return pg, fmt.Errorf("page %d claims %d elements, more than it has room for", id, pg.count)
	}
	return pg, nil
}

// mark notes that something refers to a page; false says that something did
// before.
func (p *pageFile) mark(id uint64) bool {
	if p.seen == nil {
		p.seen = make([]uint64, p.meta.end/64+1)
	}
	bit := uint64(1) << (id % 64)
	if p.seen[id/64]&bit != 0 {
		return false
	}
	p.seen[id/64] |= bit
	return true
}

// used returns how many pages something refers to, the two heads included.
func (p *pageFile) used() uint64 {
	n := uint64(2)
	for _, word := range p.seen {
		for ; word != 0; word &= word - 1 {
			n++
		}
	}
	return n
}

// An element is one entry of a leaf or a branch. Its slices are the page's.
type element struct {
	flags uint32 // of a leaf's
	key   []byte
	value []byte // of a leaf's
	child uint64 // of a branch's
	bad   bool   // its place in the page is not where it must be
}

// elements decodes a page. bbolt writes keys and values one behind the other
// without gaps, so each must begin where the one before ends: a flipped bit in
// a place or a length shows in one of the two neighbours, and costs those and
// no others.
func (pg dbPage) elements() []element {
	order := binary.NativeEndian
	list := make([]element, pg.count)
	begins, ends := make([]int64, pg.count), make([]int64, pg.count)
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
		begins[i], ends[i] = begin, begin+key+value
		// None of these can overflow: each part is a number of 32 bits.
		if key == 0 || begin < int64(pageHeader+pageElement*pg.count) || ends[i] > int64(len(pg.data)) {
			list[i].bad = true
			continue
		}
		list[i].key = pg.data[begin : begin+key : begin+key]
		list[i].value = pg.data[begin+key : ends[i] : ends[i]]
	}
	for i := range list {
		if i == 0 && begins[0] != int64(pageHeader+pageElement*pg.count) || i > 0 && begins[i] != ends[i-1] {
			list[i].bad = true
			if i > 0 {
				list[i-1].bad = true
			}
		}
	}
	return list
}
