package rewrite

import (
	"cmp"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
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
func mergeSegments(m *binary.Module) []byte {
	if !m.Mergeable || len(m.Segments) < 2 {
		return nil
	}
	segs := slices.Clone(m.Segments)
	slices.SortStableFunc(segs, func(a, b binary.Segment) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(segs); i++ {
		if end(segs[i-1]) > uint64(segs[i].Offset) {
			return nil
		}
	}
	size := mergeGap
	for _, s := range segs {
		size += s.Data.End - s.Data.Start
	}
	content := make([]byte, 0, size+size/16)
	// Each turn merges one segment and those that follow within the gap.
	n, fill := uint32(0), 0
	for i := 0; i < len(segs); n++ {
		first := i
		for i++; i < len(segs); i++ {
			gap := uint64(segs[i].Offset) - end(segs[i-1])
			if gap > mergeGap || fill+int(gap) > mergeFill {
				break
			}
			fill += int(gap)
		}
		at := segs[first].Offset
		content = append(content, 0, 0x41)
		content = binary.AppendS64(content, int64(int32(at)))
		content = append(content, 0x0b)
		content = binary.AppendU32(content, uint32(end(segs[i-1])-uint64(at)))
		for j, s := range segs[first:i] {
			if j > 0 {
				content = append(content, make([]byte, uint64(s.Offset)-end(segs[first+j-1]))...)
			}
			content = append(content, m.Raw[s.Data.Start:s.Data.End]...)
		}
	}
	return append(binary.AppendU32(nil, n), content...)
}

// end returns the address after the last byte of a segment.
func end(s binary.Segment) uint64 { return uint64(s.Offset) + uint64(s.Data.End-s.Data.Start) }
