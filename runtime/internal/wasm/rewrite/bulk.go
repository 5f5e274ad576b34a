package rewrite

import (
	"bytes"
	_ "embed"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
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
//     loop precedes every call through a table. The host functions of package wasm
//     check for a cancelled call themselves.
//
// memory.fill and memory.copy do not get a loop because compilers emit many of
// them: a loop costs compile time in proportion to the locals of its function, and
// a copy of a few bytes needs no interruption point. Up to 4 KiB there is none. A
// function of the largest size holds about 58,000 such copies, of 240 MB in total.

//go:generate wat2wasm bulk.wat -o bulk.wasm
//go:embed bulk.wasm
var bulkModule []byte

// bulkFunctions returns the bodies of the added functions for memory.fill and
// memory.copy, in this order.
var bulkFunctions = sync.OnceValue(func() [][]byte {
	l, err := binary.Scan(bulkModule, true)
	if err != nil || len(l.Bodies) != 2 {
		panic("rewrite: the embedded bulk.wasm does not match bulk.wat")
	}
	var bodies [][]byte
	for _, b := range l.Bodies {
		bodies = append(bodies, bulkModule[b.Start:b.End])
	}
	return bodies
})

// bulkType is the type of the two functions.
var bulkType = binary.FuncType{Params: []byte{binary.I32, binary.I32, binary.I32}}

// emptyLoop is an interruption point: wazero checks for a cancelled call at the
// head of each loop.
var emptyLoop = []byte{0x03, 0x40, 0x0b}

// addedFunctions returns the bodies of the functions that the rewrite adds.
func (r *rewriter) addedFunctions() [][]byte {
	if !r.BulkCalls {
		return nil
	}
	return bulkFunctions()
}

// bulkTypeIndex returns the type index of the added functions. It appends the type
// to types unless the module has an equal one.
func (r *rewriter) bulkTypeIndex(types *[]binary.FuncType) uint32 {
	if !r.BulkCalls {
		return 0
	}
	for i, t := range r.Types {
		if bytes.Equal(t.Params, bulkType.Params) && len(t.Results) == 0 {
			return uint32(i)
		}
	}
	*types = append(*types, bulkType)
	return uint32(len(r.Types) + len(*types) - 1)
}

// funcSection declares the added functions after those of the module, so that no
// function index changes.
func (r *rewriter) funcSection(content []byte, bulkType uint32) []byte {
	if !r.BulkCalls {
		return content
	}
	out := binary.AppendU32(make([]byte, 0, len(content)+16), uint32(len(r.Funcs)+len(r.addedFunctions())))
	for _, typ := range r.Funcs {
		out = binary.AppendU32(out, typ)
	}
	for range r.addedFunctions() {
		out = binary.AppendU32(out, bulkType)
	}
	return out
}

// interruptibleCode returns the code of a body, without its end instruction, with
// an interruption point at each instruction that can take long. first is the index
// of the first added function.
func (r *rewriter) interruptibleCode(b binary.Body, first uint32) []byte {
	const opCall = 0x10
	out := make([]byte, 0, 2*(b.End-b.Code))
	for instruction, how := range r.Instructions(b) {
		switch how {
		case binary.CallFill:
			out = binary.AppendU32(append(out, opCall), first)
		case binary.CallCopy:
			out = binary.AppendU32(append(out, opCall), first+1)
		case binary.LoopBefore:
			out = append(append(out, emptyLoop...), instruction...)
		case binary.Unchanged:
			out = append(out, instruction...)
		}
	}
	return out
}
