package codeindex

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A file is what the index knows of a file of the workspace.
type file struct {
	path   string
	doc    int64  // row of its words; 0: it has none, because it is binary, large, secret or unreadable
	stamp  uint64 // when it was read
	hash   uint64 // of its content, 0 if doc is 0
	recent bool   // it was changed shortly before it was read, so an equal stamp proves nothing
}

// A snapshot is all that the index knows, besides the words. It is one value of the
// database, because reading a row for each of 100,000 files takes longer than a search.
type snapshot struct {
	files []file // sorted by path
	next  int64  // first row that was never used
}

var errDamaged = errors.New("the database of the code index is damaged")

// encode writes a path as the length that it shares with the one before, and the rest.
func (s *snapshot) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(s.next))
	b = binary.AppendUvarint(b, uint64(len(s.files)))
	before := ""
	for i := range s.files {
		f := &s.files[i]
		shared := 0
		for shared < min(len(before), len(f.path)) && before[shared] == f.path[shared] {
			shared++
		}
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(f.path)-shared))
		b = append(b, f.path[shared:]...)
		recent := uint64(0)
		if f.recent {
			recent = 1
		}
		b = binary.AppendUvarint(b, uint64(f.doc)<<1|recent)
		b = binary.LittleEndian.AppendUint64(b, f.stamp)
		b = binary.LittleEndian.AppendUint64(b, f.hash)
		before = f.path
	}
	return sealed(b)
}

// sealed appends the checksum.
func sealed(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }

// decode reads what encode wrote.
func decode(b []byte) (*snapshot, error) {
	if len(b) < 4 || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, errDamaged
	}
	b = b[:len(b)-4]
	ok := true
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			ok = false
			return 0
		}
		b = b[size:]
		return n
	}
	s := &snapshot{next: int64(number())}
	count := number()
	if !ok || count > uint64(len(b)) {
		return nil, errDamaged
	}
	s.files = make([]file, 0, count)
	before := ""
	for range count {
		shared, rest := number(), number()
		if !ok || shared > uint64(len(before)) || rest > uint64(len(b)) {
			return nil, errDamaged
		}
		f := file{path: before[:shared] + string(b[:rest])}
		b = b[rest:]
		doc := number()
		if !ok || len(b) < 16 {
			return nil, errDamaged
		}
		f.doc, f.recent = int64(doc>>1), doc&1 == 1
		f.stamp, f.hash = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		b = b[16:]
		s.files = append(s.files, f)
		before = f.path
	}
	return s, nil
}
