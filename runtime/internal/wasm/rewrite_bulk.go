package wasm

import (
	"bytes"
	_ "embed"
	"sync"
)

// The engine copies and fills memory and tables in native code, which neither
// the deadline of a call nor the garbage collector can interrupt: 24 KB of
// memory.fill in a row stopped the process for 20 s, one memory.fill of 1 GiB for
// up to 1.7 s. So in modules that are not trusted
//
//   - memory.fill and memory.copy become calls of two functions that are added to
//     the module and work in chunks, with an interruption point before each;
//   - an empty loop, which is an interruption point, is put before memory.grow,
//     memory.init, table.grow, table.init, table.copy and table.fill. Each of
//     these is bounded by the size of the file or by maxTable;
//   - an empty loop is put before each call of a WASI function, which is the
//     engine's own and may read or write all memory. Where a table may hold one, it
//     is put before every call through a table. The host's functions look for a
//     cancelled call themselves.
//
// The first two become calls because compilers use them much: a loop costs the
// compiler time in proportion to the locals of its function, and a copy of a few
// bytes needs no interruption point. Up to 4 KiB there is none: a function of
// maxBody has room for some 58,000 such copies, 240 MB in all.

//go:generate wat2wasm rewrite_bulk.wat -o rewrite_bulk.wasm
//go:embed rewrite_bulk.wasm
var bulkModule []byte

// bulkFunctions returns the bodies of the functions for memory.fill and
// memory.copy, in this order.
var bulkFunctions = sync.OnceValue(func() [][]byte {
	l, err := scan(bulkModule, true)
	if err != nil || len(l.bodies) != 2 {
		panic("wasm: rewrite_bulk.wasm is not what rewrite_bulk.wat says") // it is embedded
	}
	var bodies [][]byte
	for _, b := range l.bodies {
		bodies = append(bodies, bulkModule[b.start:b.end])
	}
	return bodies
})

// bulkType is the type of the two functions.
var bulkType = funcType{params: []byte{typeI32, typeI32, typeI32}}

// emptyLoop is an interruption point: the engine looks for a cancelled call at the
// head of each loop.
var emptyLoop = []byte{0x03, 0x40, 0x0b}

// Opcodes; those of the bulk instructions follow the prefix opBulk.
const (
	opCall, opCallIndirect                = 0x10, 0x11
	opMemoryGrow, opBulk                  = 0x40, 0xfc
	opMemoryInit, opMemoryCopy            = 8, 10
	opMemoryFill, opTableInit             = 11, 12
	opTableCopy, opTableGrow, opTableFill = 14, 15, 17
)

// A bulkUse says how an instruction is made interruptible.
type bulkUse int

const (
	bulkNone bulkUse = iota // it takes no time worth mentioning
	bulkLoop                // an empty loop is put before it
	bulkFill                // it becomes a call of the first added function
	bulkCopy                // it becomes a call of the second
)

// points says at which instructions of a module interruption points are needed.
type points struct {
	wasi     []bool // by function index: it is imported from WASI
	indirect bool   // a call through a table may lead to one of them
}

func (l *layout) points() points {
	p := points{wasi: make([]bool, 0, len(l.imports))}
	for _, im := range l.imports {
		if im.kind == kindFunc {
			wasi := im.module == wasiModule
			p.indirect = p.indirect || wasi && l.values[len(p.wasi)]
			p.wasi = append(p.wasi, wasi)
		}
	}
	return p
}

// of classifies one instruction, given with its immediates.
func (p points) of(instruction []byte) bulkUse {
	switch instruction[0] {
	case opMemoryGrow:
		return bulkLoop
	case opCall:
		if len(p.wasi) == 0 {
			return bulkNone
		}
		r := newReader(instruction, 1, len(instruction))
		if f := r.u32(); int64(f) < int64(len(p.wasi)) && p.wasi[f] {
			return bulkLoop
		}
	case opCallIndirect:
		if p.indirect {
			return bulkLoop
		}
	case opBulk:
		r := newReader(instruction, 1, len(instruction))
		return bulkUseOf(r.u32(), instruction[r.off:])
	}
	return bulkNone
}

// bulkUseOf classifies an instruction behind the prefix opBulk.
func bulkUseOf(op uint32, indices []byte) bulkUse {
	// A memory other than 0, or a longer spelling of 0, is for the compiler to refuse.
	switch {
	case op == opMemoryFill && bytes.Equal(indices, []byte{0}):
		return bulkFill
	case op == opMemoryCopy && bytes.Equal(indices, []byte{0, 0}):
		return bulkCopy
	}
	switch op {
	case opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableGrow, opTableFill:
		return bulkLoop
	}
	return bulkNone
}

// added returns the bodies of the functions that the rewrite adds.
func (l *layout) added() [][]byte {
	if !l.bulk {
		return nil
	}
	return bulkFunctions()
}

// bulkTypeIndex returns the index of the type of the added functions. It adds the
// type to types if the module has none that is equal.
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

// funcSection declares the added functions behind those of the module, so that no
// index changes.
func (l *layout) funcSection(content []byte, bulkType uint32) []byte {
	if !l.bulk {
		return content
	}
	r := newReader(content, 0, len(content))
	r.u32()
	out := appendU32(make([]byte, 0, len(content)+16), uint32(len(l.funcs)+len(l.added())))
	out = append(out, content[r.off:]...)
	for range l.added() {
		out = appendU32(out, bulkType)
	}
	return out
}

// importedFuncs counts the functions that are imported.
func (l *layout) importedFuncs() (n int) {
	for _, im := range l.imports {
		if im.kind == kindFunc {
			n++
		}
	}
	return n
}

// interruptible returns the code of a body, without its end, with an interruption
// point at each instruction that can take long. first is the index of the first
// function that is added.
func (l *layout) interruptible(b body, counts *costs, first uint32) []byte {
	r := newReader(l.raw, b.code, b.end-1)
	out := make([]byte, 0, 2*(b.end-b.code))
	for r.left() > 0 {
		start := r.off
		counts.instruction(r)
		instruction := l.raw[start:r.off]
		if r.err != nil { // its last instruction runs into the end, which the compiler refuses
			return append(out, instruction...)
		}
		switch counts.points.of(instruction) {
		case bulkFill:
			out = appendU32(append(out, opCall), first)
		case bulkCopy:
			out = appendU32(append(out, opCall), first+1)
		case bulkLoop:
			out = append(append(out, emptyLoop...), instruction...)
		case bulkNone:
			out = append(out, instruction...)
		}
	}
	return out
}
