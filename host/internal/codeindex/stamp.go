package codeindex

import (
	"encoding/binary"
	"hash/fnv"
)

// A stat is what the file system says about a file.
type stat struct {
	regular, folder bool
	changed         int64  // when it was changed last, in nanoseconds
	stamp           uint64 // differs if size, times or inode do
}

// stampOf combines numbers to one.
func stampOf(numbers ...uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, n := range numbers {
		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:]) // never fails
	}
	return h.Sum64()
}

// hashOf returns a hash of a file's content.
func hashOf(data []byte) uint64 {
	h := fnv.New64a()
	h.Write(data) // never fails
	return h.Sum64()
}
