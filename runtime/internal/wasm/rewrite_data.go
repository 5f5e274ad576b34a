package wasm

import (
	"cmp"
	"slices"
)

// mergeGap is the largest gap between two data segments, in bytes, that is filled
// with zeros to merge them. mergeFill limits the zeros of a module.
const (
	mergeGap  = 256
	mergeFill = 4 << 20
)

// mergeSegments returns a data section with neighbouring segments merged, nil to
// keep the section. The Go toolchain writes about 30,000 segments, and wazero
// evaluates each of them for every instance. Overlapping segments are kept, because
// their order matters.
func mergeSegments(l *layout) []byte {
	if !l.mergeable || len(l.segments) < 2 {
		return nil
	}
	segs := slices.Clone(l.segments)
	slices.SortStableFunc(segs, func(a, b segment) int { return cmp.Compare(a.offset, b.offset) })
	for i := 1; i < len(segs); i++ {
		if segs[i-1].endsAt() > uint64(segs[i].offset) {
			return nil
		}
	}
	// Each turn merges one segment and those that follow within the gap.
	var content []byte
	n, fill := uint32(0), 0
	for i := 0; i < len(segs); n++ {
		data := slices.Clone(l.raw[segs[i].data.start:segs[i].data.end])
		at := segs[i].offset
		for i++; i < len(segs); i++ {
			gap := uint64(segs[i].offset) - (uint64(at) + uint64(len(data)))
			if gap > mergeGap || fill+int(gap) > mergeFill {
				break
			}
			fill += int(gap)
			data = append(data, make([]byte, gap)...)
			data = append(data, l.raw[segs[i].data.start:segs[i].data.end]...)
		}
		content = append(content, 0, 0x41)
		content = appendS64(content, int64(int32(at)))
		content = append(content, 0x0b)
		content = appendU32(content, uint32(len(data)))
		content = append(content, data...)
	}
	return append(appendU32(nil, n), content...)
}

// endsAt returns the address after the last byte of a segment.
func (s segment) endsAt() uint64 { return uint64(s.offset) + uint64(s.data.end-s.data.start) }
