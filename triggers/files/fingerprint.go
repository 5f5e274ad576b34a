package files

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// A Fingerprint identifies the state of a set of files without listing them. It
// has sums of hashes over names, and over names and contents, so a change of one
// file costs one hash. Two states collide by accident with probability 2^-64. It
// does not resist deliberate collisions, and does not need to.
type Fingerprint struct {
	Files    int    `json:"files"`
	Names    uint64 `json:"names,string"` // a string, because JSON readers round large numbers
	Contents uint64 `json:"contents,string"`
}

// replace replaces the state of one file. nil is an absent file.
func (f *Fingerprint) replace(rel string, before, after *entry) {
	if before != nil {
		f.Files--
		f.Names -= hash64(rel)
		f.Contents -= before.hash64(rel)
	}
	if after != nil {
		f.Files++
		f.Names += hash64(rel)
		f.Contents += after.hash64(rel)
	}
}

func hash64(rel string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, rel) // a hash never returns an error
	return h.Sum64()
}

// hash64 hashes name and content, or name, size and modification time of a file
// whose content is not hashed.
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
