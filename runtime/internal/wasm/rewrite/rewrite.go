package rewrite

import (
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
)

// MaxSize bounds a rewritten module that is compiled, in bytes. The rewrite adds a
// few bytes for each function and at most 3 bytes for each instruction that it makes
// interruptible.
const MaxSize = 2 * binary.MaxModule

// Rewrite returns the module as it is compiled: each function can be interrupted,
// tables have a maximum, data segments are merged, and each import has the import
// module that importModule returns for it. Custom sections are dropped; only wazero's
// debug code would read them.
func Rewrite(m *binary.Module, importModule func(binary.Import) string) []byte {
	r := rewriter{m}
	types, wraps := r.wrapTypes()
	bulk := r.bulkTypeIndex(&types)
	size, contents := 8, make([][]byte, 0, len(r.Sections))
	for _, s := range r.Sections {
		content := r.Raw[s.Start:s.End]
		switch s.ID {
		case binary.SectionType:
			content = r.typeSection(content, types)
		case binary.SectionImport:
			content = r.importSection(importModule)
		case binary.SectionFunction:
			content = r.funcSection(content, bulk)
		case binary.SectionTable:
			content = r.tableSection()
		case binary.SectionCode:
			content = r.codeSection(wraps)
		case binary.SectionData:
			if merged := mergeSegments(m); merged != nil {
				content = merged
			}
		}
		size += len(content) + 6
		contents = append(contents, content)
	}
	out := append(make([]byte, 0, size), r.Raw[:8]...)
	for i, s := range r.Sections {
		out = append(out, s.ID)
		out = binary.AppendU32(out, uint32(len(contents[i])))
		out = append(out, contents[i]...)
	}
	return out
}

// rewriter writes the sections of a module.
type rewriter struct{ *binary.Module }

// wrapTypes returns, by type index, the block type of the block that codeSection
// puts around a function of that type. added lists the types that the module needs
// for block types with several results.
func (r *rewriter) wrapTypes() (added []binary.FuncType, wraps [][]byte) {
	wraps = make([][]byte, len(r.Types))
	known := map[string]int{}
	// Reuse types that the module declares; compilers declare few of this form.
	for i, t := range r.Types {
		if len(t.Params) == 0 && len(t.Results) > 1 {
			if _, ok := known[string(t.Results)]; !ok {
				known[string(t.Results)] = i
			}
		}
	}
	for _, i := range r.Funcs {
		t := r.Types[i]
		switch {
		case wraps[i] != nil:
		case len(t.Results) == 0:
			wraps[i] = []byte{0x40}
		case len(t.Results) == 1:
			wraps[i] = t.Results[:1:1]
		default:
			at, ok := known[string(t.Results)]
			if !ok {
				at = len(r.Types) + len(added)
				known[string(t.Results)] = at
				added = append(added, binary.FuncType{Results: t.Results})
			}
			wraps[i] = binary.AppendS64(nil, int64(at))
		}
	}
	return added, wraps
}

// typeSection appends types to the type section.
func (r *rewriter) typeSection(content []byte, added []binary.FuncType) []byte {
	if len(added) == 0 {
		return content
	}
	out := binary.AppendU32(nil, uint32(len(r.Types)+len(added)))
	for _, t := range slices.Concat(r.Types, added) {
		out = binary.AppendU32(append(out, binary.FormFunction), uint32(len(t.Params)))
		out = binary.AppendU32(append(out, t.Params...), uint32(len(t.Results)))
		out = append(out, t.Results...)
	}
	return out
}

// importSection writes the imports with their new import modules.
func (r *rewriter) importSection(importModule func(binary.Import) string) []byte {
	out := binary.AppendU32(nil, uint32(len(r.Imports)))
	for _, im := range r.Imports {
		name := importModule(im)
		out = append(binary.AppendU32(out, uint32(len(name))), name...)
		out = append(out, r.Raw[im.Start:im.End]...)
	}
	return out
}

// tableSection writes the tables with a maximum. Without one table.grow may take a
// gigabyte of host memory, which no memory limit counts.
func (r *rewriter) tableSection() []byte {
	out := binary.AppendU32(nil, uint32(len(r.Tables)))
	for _, t := range r.Tables {
		out = append(out, t.Elem, 1)
		out = binary.AppendU32(out, t.Min)
		// The compiler rejects a maximum below the minimum.
		out = binary.AppendU32(out, min(t.Max, binary.MaxTable))
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
// has to change but those of bulk.go.
func (r *rewriter) codeSection(wraps [][]byte) []byte {
	size := 256
	for _, b := range r.Bodies {
		size += b.End - b.Start + 16
	}
	out := binary.AppendU32(make([]byte, 0, size), uint32(len(r.Bodies)+len(r.addedFunctions())))
	first := uint32(r.ImportedFuncs() + len(r.Funcs))
	for i, b := range r.Bodies {
		bt, code := wraps[r.Funcs[i]], r.Raw[b.Code:b.End-1]
		if b.Bulk {
			code = r.interruptibleCode(b, first)
		}
		out = binary.AppendU32(out, uint32(b.Code-b.Start+len(code)+5+2*len(bt)))
		out = append(out, r.Raw[b.Start:b.Code]...)
		out = append(append(out, 0x03), bt...)
		out = append(append(out, 0x02), bt...)
		out = append(out, code...)
		out = append(out, 0x0b, 0x0b, 0x0b)
	}
	for _, f := range r.addedFunctions() {
		out = append(binary.AppendU32(out, uint32(len(f))), f...)
	}
	return out
}
