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
	// Each turn merges one segment and those that follow within the gap.
	var content []byte
	n, fill := uint32(0), 0
	for i := 0; i < len(segs); n++ {
		data := slices.Clone(m.Raw[segs[i].Data.Start:segs[i].Data.End])
		at := segs[i].Offset
		for i++; i < len(segs); i++ {
			gap := uint64(segs[i].Offset) - (uint64(at) + uint64(len(data)))
			if gap > mergeGap || fill+int(gap) > mergeFill {
				break
			}
			fill += int(gap)
			data = append(data, make([]byte, gap)...)
			data = append(data, m.Raw[segs[i].Data.Start:segs[i].Data.End]...)
		}
		content = append(content, 0, 0x41)
		content = binary.AppendS64(content, int64(int32(at)))
		content = append(content, 0x0b)
		content = binary.AppendU32(content, uint32(len(data)))
		content = append(content, data...)
	}
	return append(binary.AppendU32(nil, n), content...)
}

// end returns the address after the last byte of a segment.
func end(s binary.Segment) uint64 { return uint64(s.Offset) + uint64(s.Data.End-s.Data.Start) }
