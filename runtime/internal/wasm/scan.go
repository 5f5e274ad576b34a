package wasm

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Limits of a module, ABI clause A8. The engine compiles without a deadline and
// allocates what a count announces, so every count is checked before the engine
// sees the bytes: without that, a module of thirty bytes that declares four billion
// locals ends the process. What the scan itself keeps of a module is bounded too, in
// a few bytes for each byte of the file. cost.go bounds the time of a compile.
const (
	maxModule   = 32 << 20  // bytes
	maxSections = 4_096     // custom ones included; compilers write some thirty
	maxBody     = 512 << 10 // bytes of one function, of modules that are not trusted
	maxLocals   = 50_000    // of one function, without its parameters
	maxAllLocal = 5_000_000 // of all functions together
	maxFuncs    = 200_000
	maxTypes    = 50_000
	maxImports  = 1_000     // the host offers about a hundred
	maxExports  = 10_000    // each lookup of one walks the imports
	maxEntries  = 1_000_000 // of any other vector
	maxArity    = 1_000     // parameters or results of one type
	maxTables   = 16
	maxTable    = 100_000 // entries of one table; each takes 8 bytes of the host
	maxName     = 4 << 10 // bytes
	maxPages    = 65_536  // of 64 KiB; the tighter bound is Options.MaxMemoryBytes
)

// Section ids of the binary format.
const (
	secCustom, secType, secImport, secFunc, secTable, secMemory         = 0, 1, 2, 3, 4, 5
	secGlobal, secExport, secStart, secElem, secCode, secData, secCount = 6, 7, 8, 9, 10, 11, 12
)

// pageSize is the unit of linear memory in bytes.
const pageSize = 64 << 10

// funcType is a function's signature in value-type bytes.
type funcType struct{ params, results []byte }

// span is a range of the module's bytes.
type span struct{ start, end int }

// section is one section; its span is the content without id and size.
type section struct {
	id byte
	span
}

// body is one function body; locals end where code begins.
type body struct {
	span
	code int
	bulk bool // it has instructions that bulk.go changes; never of a trusted module
}

// importEntry is one import. Type is the index of a function's type.
type importEntry struct {
	module, name string
	kind         byte
	typ          uint32
}

// exportEntry is one export.
type exportEntry struct {
	name  string
	kind  byte
	index uint32
}

// table is one table of the module itself; max is maxTable if it names none.
type table struct {
	min  uint32
	max  uint32
	elem byte
}

// segment is an active data segment of memory 0 at a constant offset.
type segment struct {
	offset uint32
	data   span
}

// layout is what a scan found.
type layout struct {
	raw      []byte
	sections []section     // without the custom ones
	types    []funcType    // by index, as all below
	imports  []importEntry // functions among them come first in the index space
	funcs    []uint32      // type index of each own function
	tables   []table
	exports  []exportEntry
	bodies   []body
	bulk     bool // some of them need the functions of bulk.go
	// values says by index which imported functions are exported, elements or
	// values of globals: no others can be called through a table.
	values []bool
	memory bool
	memMin uint32 // pages
	// segments holds all data if every one is active, of memory 0 and at a
	// constant; else mergeable is false and segments is not complete.
	segments  []segment
	mergeable bool
}

var (
	magic     = []byte("\x00asm")
	component = uint32(0x0001000d) // version 13, layer 1
)

// isComponent reports whether the bytes begin like a component.
func isComponent(wasm []byte) bool {
	return len(wasm) >= 8 && bytes.Equal(wasm[:4], magic) && binary.LittleEndian.Uint32(wasm[4:])>>16 == component>>16
}

// scan reads a module's structure and refuses what is malformed, beyond the
// limits, or outside WebAssembly 2.0. It reads the code of a module that is not
// trusted to estimate what compiling it costs, but leaves validating to the compiler.
func scan(wasm []byte, trusted bool) (*layout, error) {
	switch {
	case len(wasm) > maxModule:
		return nil, abi.New(abi.Limit, fmt.Sprintf("scan module: %d bytes, at most %d are allowed", len(wasm), maxModule))
	case isComponent(wasm):
		return nil, &abi.Error{Code: abi.BadFields, Message: "scan module: this is a WebAssembly component (WASI 0.2), a plugin is a core module",
			Hint: "build for wasm32-wasip1 or wasm32-unknown-unknown, or take the core module out of the component"}
	case len(wasm) < 8 || !bytes.Equal(wasm[:4], magic):
		return nil, abi.New(abi.BadFields, "scan module: not a WebAssembly module")
	case binary.LittleEndian.Uint32(wasm[4:]) != 1:
		return nil, abi.New(abi.BadFields, fmt.Sprintf("scan module: binary format version %d, wanted 1", binary.LittleEndian.Uint32(wasm[4:])))
	}
	l := &layout{raw: wasm, mergeable: true}
	if err := l.read(trusted); err != nil {
		return nil, abi.New(abi.BadFields, "scan module: "+err.Error())
	}
	return l, nil
}

// read walks the sections. All but the custom ones appear at most once and in the
// order of the standard. Custom sections are not kept, since they are dropped
// before compiling whatever they hold; an empty one takes two bytes of the file.
func (l *layout) read(trusted bool) error {
	r := newReader(l.raw, 8, len(l.raw))
	last := 0
	for n := 1; r.left() > 0 && r.err == nil; n++ {
		if n > maxSections {
			return fmt.Errorf("byte %d: more than %d sections", r.off, maxSections)
		}
		id := r.byte()
		size := r.count("bytes of a section", maxModule)
		s := section{id: id, span: span{r.off, r.off + size}}
		r.bytes(size)
		if r.err != nil {
			break
		}
		if id == secCustom {
			continue
		}
		order := sectionOrder(id)
		if order == 0 {
			return fmt.Errorf("byte %d: section %d is beyond WebAssembly 2.0", s.start, id)
		}
		if order <= last {
			return fmt.Errorf("byte %d: section %d is repeated or out of order", s.start, id)
		}
		last = order
		l.sections = append(l.sections, s)
		if err := l.section(s, trusted); err != nil {
			return err
		}
	}
	if r.err != nil {
		return r.err
	}
	if len(l.funcs) != len(l.bodies) {
		return fmt.Errorf("%d functions are declared, %d have a body", len(l.funcs), len(l.bodies))
	}
	return nil
}

// sectionOrder returns a section's place in a module, 0 if there is none. The
// data count stands before the code though its number is higher.
func sectionOrder(id byte) int {
	switch {
	case id >= secType && id <= secElem:
		return int(id)
	case id == secCount:
		return secElem + 1
	case id == secCode || id == secData:
		return int(id) + 1
	}
	return 0
}

// section reads one section and checks that its content fills it.
func (l *layout) section(s section, trusted bool) error {
	r := newReader(l.raw, s.start, s.end)
	r.values = l.values
	switch s.id {
	case secType:
		l.readTypes(r)
	case secImport:
		l.readImports(r)
		l.values = make([]bool, l.importedFuncs())
	case secFunc:
		n := r.count("functions", maxFuncs)
		for l.funcs = make([]uint32, 0, n); n > 0 && r.err == nil; n-- {
			l.funcs = append(l.funcs, l.typeIndex(r))
		}
	case secTable:
		for n := r.count("tables", maxTables); n > 0 && r.err == nil; n-- {
			l.tables = append(l.tables, readTable(r))
		}
	case secMemory:
		if n := r.count("memories", 1); n == 1 {
			l.memory = true
			l.memMin, _ = readLimits(r, maxPages, "memory pages")
		}
	case secGlobal:
		for n := r.count("globals", maxEntries); n > 0 && r.err == nil; n-- {
			valueType(r)
			r.byte() // mutability
			constExpr(r)
		}
	case secExport:
		for n := r.count("exports", maxExports); n > 0 && r.err == nil; n-- {
			ex := exportEntry{name: r.name(), kind: r.byte()}
			if ex.kind == kindFunc {
				ex.index = r.funcIndex()
			} else {
				ex.index = r.u32()
			}
			l.exports = append(l.exports, ex)
		}
	case secStart:
		r.u32() // it runs in newInstance, under the call's deadline
	case secElem:
		for n := r.count("element segments", maxEntries); n > 0 && r.err == nil; n-- {
			readElem(r)
		}
	case secCount:
		l.mergeable = false // its indices may be used by name
		r.u32()
	case secCode:
		l.readCode(r, trusted)
	case secData:
		n := r.count("data segments", maxEntries)
		for l.segments = make([]segment, 0, n); n > 0 && r.err == nil; n-- {
			l.readData(r)
		}
	}
	if r.err == nil && r.left() > 0 {
		r.fail("%d bytes too many in section %d", r.left(), s.id)
	}
	return r.err
}
