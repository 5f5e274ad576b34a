package wasm

import (
	"bytes"
	_ "embed"
	"sync"
)

// wazero copies and fills memory and tables in native code, which neither the
// deadline of a call nor the garbage collector can interrupt: 24 KB of memory.fill
// in a row stopped the process for 20 s, one memory.fill of 1 GiB for up to 1.7 s.
// In untrusted modules, therefore,
//
//   - memory.fill and memory.copy become calls of two functions that the rewrite
//     adds to the module. They work in chunks with an interruption point before
//     each chunk;
//   - an empty loop, which is an interruption point, precedes memory.grow,
//     memory.init, table.grow, table.init, table.copy and table.fill. The work of
//     each is bounded by the size of the file or by maxTable;
//   - an empty loop precedes each call of a WASI function, which belongs to wazero
//     and may read or write all memory. If a table may hold a WASI function, the
//     loop precedes every call through a table. The host functions of this package
//     check for a cancelled call themselves.
//
// memory.fill and memory.copy do not get a loop because compilers emit many of
// them: a loop costs compile time in proportion to the locals of its function, and
// a copy of a few bytes needs no interruption point. Up to 4 KiB there is none. A
// function of maxBody bytes holds about 58,000 such copies, of 240 MB in total.

//go:generate wat2wasm rewrite_bulk.wat -o rewrite_bulk.wasm
//go:embed rewrite_bulk.wasm
var bulkModule []byte

// bulkFunctions returns the bodies of the added functions for memory.fill and
// memory.copy, in this order.
var bulkFunctions = sync.OnceValue(func() [][]byte {
	l, err := scan(bulkModule, true)
	if err != nil || len(l.bodies) != 2 {
		panic("wasm: the embedded rewrite_bulk.wasm does not match rewrite_bulk.wat")
	}
	var bodies [][]byte
	for _, b := range l.bodies {
		bodies = append(bodies, bulkModule[b.start:b.end])
	}
	return bodies
})

// bulkType is the type of the two functions.
var bulkType = funcType{params: []byte{typeI32, typeI32, typeI32}}

// emptyLoop is an interruption point: wazero checks for a cancelled call at the
// head of each loop.
var emptyLoop = []byte{0x03, 0x40, 0x0b}

// Opcodes. Those of bulk instructions follow the prefix opBulk.
const (
	opCall, opCallIndirect                = 0x10, 0x11
	opMemoryGrow, opBulk                  = 0x40, 0xfc
	opMemoryInit, opMemoryCopy            = 8, 10
	opMemoryFill, opTableInit             = 11, 12
	opTableCopy, opTableGrow, opTableFill = 14, 15, 17
)

// interruption is how the rewrite makes an instruction interruptible.
type interruption int

const (
	unchanged  interruption = iota // the instruction takes negligible time
	loopBefore                     // an empty loop precedes it
	callFill                       // it becomes a call of the first added function
	callCopy                       // it becomes a call of the second added function
)

// interruptPoints determines which instructions of a module need an interruption
// point.
type interruptPoints struct {
	wasi     []bool // by function index: the function is imported from WASI
	indirect bool   // a call through a table may reach a WASI function
}

func (l *layout) interruptPoints() interruptPoints {
	p := interruptPoints{wasi: make([]bool, 0, len(l.imports))}
	for _, im := range l.imports {
		if im.kind == kindFunc {
			wasi := im.module == wasiModule
			p.indirect = p.indirect || wasi && l.values[len(p.wasi)]
			p.wasi = append(p.wasi, wasi)
		}
	}
	return p
}

// classify returns what the rewrite does with an instruction, which includes its
// immediates.
func (p interruptPoints) classify(instruction []byte) interruption {
	switch instruction[0] {
	case opMemoryGrow:
		return loopBefore
	case opCall:
		if len(p.wasi) == 0 {
			return unchanged
		}
		r := newReader(instruction, 1, len(instruction))
		if f := r.u32(); int64(f) < int64(len(p.wasi)) && p.wasi[f] {
			return loopBefore
		}
	case opCallIndirect:
		if p.indirect {
			return loopBefore
		}
	case opBulk:
		r := newReader(instruction, 1, len(instruction))
		return classifyBulk(r.u32(), instruction[r.off:])
	}
	return unchanged
}

// classifyBulk classifies an instruction that has the prefix opBulk.
func classifyBulk(op uint32, indices []byte) interruption {
	// The compiler rejects memories other than 0 and longer encodings of 0.
	switch {
	case op == opMemoryFill && bytes.Equal(indices, []byte{0}):
		return callFill
	case op == opMemoryCopy && bytes.Equal(indices, []byte{0, 0}):
		return callCopy
	}
	switch op {
	case opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableGrow, opTableFill:
		return loopBefore
	}
	return unchanged
}

// addedFunctions returns the bodies of the functions that the rewrite adds.
func (l *layout) addedFunctions() [][]byte {
	if !l.bulk {
		return nil
	}
	return bulkFunctions()
}

// bulkTypeIndex returns the type index of the added functions. It appends the type
// to types unless the module has an equal one.
func (l *layout) bulkTypeIndex(types *[]funcType) uint32 {
	if !l.bulk {
		return 0
	}
	for i, t := range l.types {
		if bytes.Equal(t.params, bulkType.params) && len(t.results) == 0 {
			return uint32(i)
		}
	}
	*types = append(*types, bulkType)
	return uint32(len(l.types) + len(*types) - 1)
}

// funcSection declares the added functions after those of the module, so that no
// function index changes.
func (l *layout) funcSection(content []byte, bulkType uint32) []byte {
	if !l.bulk {
		return content
	}
	r := newReader(content, 0, len(content))
	r.u32()
	out := appendU32(make([]byte, 0, len(content)+16), uint32(len(l.funcs)+len(l.addedFunctions())))
	out = append(out, content[r.off:]...)
	for range l.addedFunctions() {
		out = appendU32(out, bulkType)
	}
	return out
}

// importedFuncs returns the number of imported functions.
func (l *layout) importedFuncs() (n int) {
	for _, im := range l.imports {
		if im.kind == kindFunc {
			n++
		}
	}
	return n
}

// interruptibleCode returns the code of a body, without its end instruction, with
// an interruption point at each instruction that can take long. first is the index
// of the first added function.
func (l *layout) interruptibleCode(b body, counts *costs, first uint32) []byte {
	r := newReader(l.raw, b.code, b.end-1)
	out := make([]byte, 0, 2*(b.end-b.code))
	for r.left() > 0 {
		start := r.off
		counts.instruction(r)
		instruction := l.raw[start:r.off]
		if r.err != nil { // the last instruction is cut off, which the compiler rejects
			return append(out, instruction...)
		}
		switch counts.points.classify(instruction) {
		case callFill:
			out = appendU32(append(out, opCall), first)
		case callCopy:
			out = appendU32(append(out, opCall), first+1)
		case loopBefore:
			out = append(append(out, emptyLoop...), instruction...)
		case unchanged:
			out = append(out, instruction...)
		}
	}
	return out
}
