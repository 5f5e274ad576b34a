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
	// A group is a segment and those that follow within the gap. The section is megabytes: it is
	// allocated once, with its size.
	size, fill, groups := 5, 0, make([]int, 0, 64)
	for i := 0; i < len(segs); {
		size += segs[i].Data.End - segs[i].Data.Start + 16
		for i++; i < len(segs); i++ {
			gap := uint64(segs[i].Offset) - end(segs[i-1])
			if gap > mergeGap || fill+int(gap) > mergeFill {
				break
			}
			fill += int(gap)
			size += segs[i].Data.End - segs[i].Data.Start
		}
		groups = append(groups, i)
	}
	content, first := binary.AppendU32(make([]byte, 0, size+fill), uint32(len(groups))), 0
	var zeros [mergeGap]byte
	for _, last := range groups {
		at := segs[first].Offset
		content = append(content, 0, 0x41)
		content = binary.AppendS64(content, int64(int32(at)))
		content = append(content, 0x0b)
		content = binary.AppendU32(content, uint32(end(segs[last-1])-uint64(at)))
		for j := first; j < last; j++ {
			if j > first {
				content = append(content, zeros[:uint64(segs[j].Offset)-end(segs[j-1])]...)
			}
			content = append(content, m.Raw[segs[j].Data.Start:segs[j].Data.End]...)
		}
		first = last
	}
	return content
}

// end returns the address after the last byte of a segment.
func end(s binary.Segment) uint64 { return uint64(s.Offset) + uint64(s.Data.End-s.Data.Start) }
