package wasm

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Limits of a module, ABI clause A8.2. wazero compiles without a deadline and
// allocates as many entries as a count announces. Every count is therefore checked
// before wazero reads the bytes: a module of 30 bytes that declares four billion
// locals would otherwise end the process. The scan itself allocates at most ten
// bytes for each byte of the file. rewrite_cost.go bounds the time of a compile.
const (
	maxModule   = 32 << 20  // bytes
	maxSections = 4_096     // with custom sections; compilers write about 30
	maxBody     = 512 << 10 // bytes of one function of an untrusted module
	maxLocals   = 50_000    // of one function, without its parameters
	maxAllLocal = 5_000_000 // of all functions
	maxFuncs    = 200_000
	maxTypes    = 50_000
	maxImports  = 1_000     // the host offers about a hundred
	maxExports  = 10_000    // each lookup of an export walks the imports
	maxEntries  = 1_000_000 // of any other vector
	maxArity    = 1_000     // parameters or results of one type
	maxTables   = 16
	maxTable    = 100_000 // entries of one table; each takes 8 bytes of host memory
	maxName     = 4 << 10 // bytes
	maxPages    = 65_536  // of 64 KiB; Options.MaxMemoryBytes is the tighter bound
)

// Section ids of the binary format.
const (
	secCustom, secType, secImport, secFunc, secTable, secMemory         = 0, 1, 2, 3, 4, 5
	secGlobal, secExport, secStart, secElem, secCode, secData, secCount = 6, 7, 8, 9, 10, 11, 12
)

// pageSize is the unit of linear memory in bytes.
const pageSize = 64 << 10

// funcType is the signature of a function, in value type bytes.
type funcType struct{ params, results []byte }

// span is a range of the module's bytes.
type span struct{ start, end int }

// section is one section. Its span is the content, without id and size.
type section struct {
	id byte
	span
}

// body is one function body. Its locals end where its code begins.
type body struct {
	span
	code int
	bulk bool // has instructions that rewrite_bulk.go changes; false in a trusted module
}

// importEntry is one import. typ is the type index of an imported function.
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

// table is a table that the module defines. max is maxTable if the module sets none.
type table struct {
	min  uint32
	max  uint32
	elem byte
}

// segment is an active data segment of memory 0 with a constant offset.
type segment struct {
	offset uint32
	data   span
}

// layout is the structure of a module, the result of a scan.
type layout struct {
	raw      []byte
	sections []section     // without custom sections
	types    []funcType    // by index, like all lists below
	imports  []importEntry // imported functions have the lowest function indices
	funcs    []uint32      // type index of each function that the module defines
	tables   []table
	exports  []exportEntry
	bodies   []body
	bulk     bool // a body calls the functions that rewrite_bulk.go adds
	// values marks, by index, the imported functions that are exported, elements
	// or values of globals. Only those can be called through a table.
	values []bool
	memory bool
	memMin uint32 // pages
	// segments lists all data segments if each is active, of memory 0 and at a
	// constant offset. Otherwise mergeable is false and segments is incomplete.
	segments  []segment
	mergeable bool
}

var (
	magic            = []byte("\x00asm")
	componentVersion = uint32(0x0001000d) // version 13, layer 1
)

// isComponent reports whether wasm has the header of a component.
func isComponent(wasm []byte) bool {
	return len(wasm) >= 8 && bytes.Equal(wasm[:4], magic) && binary.LittleEndian.Uint32(wasm[4:])>>16 == componentVersion>>16
}

// scan reads the structure of a module. It rejects modules that are malformed,
// exceed the limits or need more than WebAssembly 2.0. It decodes the code of an
// untrusted module to estimate how long compiling it takes. Code is validated by
// the compiler.
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
		return nil, abi.New(abi.BadFields, fmt.Sprintf("scan module: binary format version %d, want 1", binary.LittleEndian.Uint32(wasm[4:])))
	}
	l := &layout{raw: wasm, mergeable: true}
	if err := l.read(trusted); err != nil {
		return nil, abi.New(abi.BadFields, "scan module: "+err.Error())
	}
	return l, nil
}

// read reads the sections. All but custom sections appear at most once and in the
// order of the standard. Custom sections are not kept, because they are dropped
// before compiling. An empty one takes two bytes of the file.
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

// sectionOrder returns the position of a section in a module, 0 for an unknown
// id. The data count section precedes the code section although its id is higher.
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

// section reads one section and checks that nothing is left in it.
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
		r.u32() // newInstance executes it, under the deadline of the call
	case secElem:
		for n := r.count("element segments", maxEntries); n > 0 && r.err == nil; n-- {
			readElem(r)
		}
	case secCount:
		l.mergeable = false // code may refer to segments by index
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
