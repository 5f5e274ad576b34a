package wasm

// maxRewritten bounds a rewritten module in bytes. The rewrite adds a few bytes for
// each function and at most 3 bytes for each instruction of rewrite_bulk.go.
const maxRewritten = 2 * maxModule

// rewrite returns the module as it is compiled: each function can be interrupted,
// kernel imports lead to the call memory, tables have a maximum, data segments are
// merged. Custom sections are dropped; only wazero's debug code would read them.
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

// wrapTypes returns, by type index, the block type of the block that codeSection
// puts around a function of that type. added lists the types that the module needs
// for block types with several results.
func (l *layout) wrapTypes() (added []funcType, wraps [][]byte) {
	wraps = make([][]byte, len(l.types))
	known := map[string]int{}
	// Reuse types that the module declares; compilers declare few of this form.
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

// tableSection writes the tables with a maximum. Without one table.grow may take a
// gigabyte of host memory, which no memory limit counts.
func (l *layout) tableSection() []byte {
	out := appendU32(nil, uint32(len(l.tables)))
	for _, t := range l.tables {
		out = append(out, t.elem, 1)
		out = appendU32(out, t.min)
		// The compiler rejects a maximum below the minimum.
		out = appendU32(out, min(t.max, maxTable))
	}
	return out
}

// codeSection puts each body into a block in a loop:
//
//	locals instrs end  ->  locals loop bt block bt instrs end end end
//
// wazero checks for a cancelled call at the head of each loop, and thereby at the
// entry of each function too. Otherwise a tree of calls without a loop would run
// for minutes after its deadline. A branch to the label of the function now leaves
// the inner block, with the same values, and falls out of both, so no instruction
// has to change but those of rewrite_bulk.go.
func (l *layout) codeSection(wraps [][]byte) []byte {
	size := 256
	for _, b := range l.bodies {
		size += b.end - b.start + 16
	}
	out := appendU32(make([]byte, 0, size), uint32(len(l.bodies)+len(l.addedFunctions())))
	first, counts := uint32(l.importedFuncs()+len(l.funcs)), l.newCosts()
	for i, b := range l.bodies {
		bt, code := wraps[l.funcs[i]], l.raw[b.code:b.end-1]
		if b.bulk {
			code = l.interruptibleCode(b, &counts, first)
		}
		out = appendU32(out, uint32(b.code-b.start+len(code)+5+2*len(bt)))
		out = append(out, l.raw[b.start:b.code]...)
		out = append(append(out, 0x03), bt...)
		out = append(append(out, 0x02), bt...)
		out = append(out, code...)
		out = append(out, 0x0b, 0x0b, 0x0b)
	}
	for _, f := range l.addedFunctions() {
		out = append(appendU32(out, uint32(len(f))), f...)
	}
	return out
}
