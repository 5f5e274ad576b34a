package files

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// A Mark tells two states of a set of files apart without remembering the
// files: sums of hashes over their names, and over names and contents. It is
// kept up to date at the cost of one file's hash a change. That two states have
// the same mark by accident has a chance of one in 2^64; nobody gains by making
// it happen.
type Mark struct {
	Files    int    `json:"files"`
	Names    uint64 `json:"names,string"` // as a string: JSON readers lose digits
	Contents uint64 `json:"contents,string"`
}

// replace exchanges the state of one file.
func (m *Mark) replace(rel string, before, after *entry) {
	if before != nil {
		m.Files--
		m.Names -= hash64(rel)
		m.Contents -= before.hash64(rel)
	}
	if after != nil {
		m.Files++
		m.Names += hash64(rel)
		m.Contents += after.hash64(rel)
	}
}

func hash64(rel string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, rel) // a hash takes all
	return h.Sum64()
}

// hash64 mixes name and content; times count only where there is no hash.
func (e *entry) hash64(rel string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, rel)
	_, _ = h.Write([]byte{0})
	if e.hashed {
		_, _ = h.Write(e.sum[:])
		return h.Sum64()
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(e.stamp.size))
	binary.LittleEndian.PutUint64(b[8:], uint64(e.stamp.modified))
	_, _ = h.Write(b[:])
	return h.Sum64()
}
