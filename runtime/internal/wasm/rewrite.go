package wasm

import (
	"cmp"
	"slices"
)

// mergeGap is the widest hole between two data segments that is filled with
// zeros to join them; mergeFill bounds what all holes of a module may add.
const (
	mergeGap  = 256
	mergeFill = 4 << 20
)

// maxRewritten bounds a rewritten module in bytes. The rewrite makes a module longer:
// by a few bytes a function, and by at most 3 bytes an instruction of bulk.go.
const maxRewritten = 2 * maxModule

// rewrite returns the module as it is compiled: each function can be
// interrupted, kernel imports lead to the call memory, tables have a maximum,
// data segments are joined. Custom sections, which only the engine's debug
// code would read, are left out: the scan has not kept them.
func rewrite(l *layout) []byte {
	out := make([]byte, 0, len(l.raw)+len(l.raw)/16+8)
	out = append(out, l.raw[:8]...)
	types, wraps := l.wrapTypes()
	bulk := l.bulkTypeIndex(&types)
	for _, s := range l.sections {
		content := l.raw[s.start:s.end]
		switch s.id {
		case secType:
			content = l.typeSection(content, types)
		case secImport:
			content = l.importSection(content)
		case secFunc:
			content = l.funcSection(content, bulk)
		case secTable:
			content = l.tableSection()
		case secCode:
			content = l.codeSection(wraps)
		case secData:
			if merged := mergeSegments(l); merged != nil {
				content = merged
			}
		}
		out = append(out, s.id)
		out = appendU32(out, uint32(len(content)))
		out = append(out, content...)
	}
	return out
}

// wrapTypes returns, for each type, the block type of a function of that type
// wrapped in a block, and the types to add for those with several results.
func (l *layout) wrapTypes() (added []funcType, wraps [][]byte) {
	wraps = make([][]byte, len(l.types))
	known := map[string]int{}
	// A type that is there already serves; the module of a compiler has few.
	for i, t := range l.types {
		if len(t.params) == 0 && len(t.results) > 1 {
			if _, ok := known[string(t.results)]; !ok {
				known[string(t.results)] = i
			}
		}
	}
	for _, i := range l.funcs {
		t := l.types[i]
		switch {
		case wraps[i] != nil:
		case len(t.results) == 0:
			wraps[i] = []byte{0x40}
		case len(t.results) == 1:
			wraps[i] = t.results[:1:1]
		default:
			at, ok := known[string(t.results)]
			if !ok {
				at = len(l.types) + len(added)
				known[string(t.results)] = at
				added = append(added, funcType{results: t.results})
			}
			wraps[i] = appendS64(nil, int64(at))
		}
	}
	return added, wraps
}

// typeSection appends types to a type section.
func (l *layout) typeSection(content []byte, added []funcType) []byte {
	if len(added) == 0 {
		return content
	}
	r := newReader(content, 0, len(content))
	r.u32()
	out := appendU32(nil, uint32(len(l.types)+len(added)))
	out = append(out, content[r.off:]...)
	for _, t := range added {
		out = appendU32(append(out, typeFunc), uint32(len(t.params)))
		out = appendU32(append(out, t.params...), uint32(len(t.results)))
		out = append(out, t.results...)
	}
	return out
}

// tableSection writes the tables with a maximum: without one table.grow may
// take a gigabyte of the host's own memory, which no memory limit counts.
func (l *layout) tableSection() []byte {
	out := appendU32(nil, uint32(len(l.tables)))
	for _, t := range l.tables {
		out = append(out, t.elem, 1)
		out = appendU32(out, t.min)
		// A maximum below the minimum is left for the compiler to refuse.
		out = appendU32(out, min(t.max, maxTable))
	}
	return out
}

// codeSection puts each body into a block in a loop:
//
//	locals instrs end  ->  locals loop bt block bt instrs end end end
//
// The engine looks for a cancelled call at the head of each loop, so now at each
// function's entry too. Without that a tree of calls that has no loop runs to its
// end, minutes after its deadline. A branch to the function's label now leaves the
// inner block, with the same values, and falls out of both, so instructions stay
// as they are but for those of bulk.go.
func (l *layout) codeSection(wraps [][]byte) []byte {
	size := 256
	for _, b := range l.bodies {
		size += b.end - b.start + 16
	}
	out := appendU32(make([]byte, 0, size), uint32(len(l.bodies)+len(l.added())))
	first, counts := uint32(l.importedFuncs()+len(l.funcs)), l.newCosts()
	for i, b := range l.bodies {
		bt, code := wraps[l.funcs[i]], l.raw[b.code:b.end-1]
		if b.bulk {
			code = l.interruptible(b, &counts, first)
		}
		out = appendU32(out, uint32(b.code-b.start+len(code)+5+2*len(bt)))
		out = append(out, l.raw[b.start:b.code]...)
		out = append(append(out, 0x03), bt...)
		out = append(append(out, 0x02), bt...)
		out = append(out, code...)
		out = append(out, 0x0b, 0x0b, 0x0b)
	}
	for _, f := range l.added() {
		out = append(appendU32(out, uint32(len(f))), f...)
	}
	return out
}

// mergeSegments joins neighbouring data segments, or returns nil to leave them.
// The Go toolchain writes some thirty thousand, and the engine evaluates
// each for every instance. Segments that overlap are left alone, for then
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
	// Each turn takes one segment and all that follow closely enough.
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

// endsAt returns the address after a segment's last byte.
func (s segment) endsAt() uint64 { return uint64(s.offset) + uint64(s.data.end-s.data.start) }
