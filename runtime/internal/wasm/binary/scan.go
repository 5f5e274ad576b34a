package binary

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
// bytes for each byte of the file. cost.go bounds the time of a compile.
const (
	MaxModule   = 32 << 20  // bytes
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
	MaxTable    = 100_000 // entries of one table; each takes 8 bytes of host memory
	maxName     = 4 << 10 // bytes
	MaxPages    = 65_536  // of 64 KiB; a host has a tighter bound
)

var (
	magic            = []byte("\x00asm")
	componentVersion = uint32(0x0001000d) // version 13, layer 1
)

// IsComponent reports whether wasm has the header of a component.
func IsComponent(wasm []byte) bool {
	return len(wasm) >= 8 && bytes.Equal(wasm[:4], magic) && binary.LittleEndian.Uint32(wasm[4:])>>16 == componentVersion>>16
}

// Scan reads the structure of a module. It rejects modules that are malformed,
// exceed the limits or need more than WebAssembly 2.0. It decodes the code of an
// untrusted module to estimate how long compiling it takes, and to find instructions
// that the rewrite changes. Code is validated by the compiler. The result refers to
// the bytes.
func Scan(wasm []byte, trusted bool) (*Module, error) {
	switch {
	case len(wasm) > MaxModule:
		return nil, abi.New(abi.Limit, fmt.Sprintf("scan module: %d bytes, at most %d are allowed", len(wasm), MaxModule))
	case IsComponent(wasm):
		return nil, &abi.Error{Code: abi.BadFields, Message: "scan module: this is a WebAssembly component (WASI 0.2), a plugin is a core module",
			Hint: "build for wasm32-wasip1 or wasm32-unknown-unknown, or take the core module out of the component"}
	case len(wasm) < 8 || !bytes.Equal(wasm[:4], magic):
		return nil, abi.New(abi.BadFields, "scan module: not a WebAssembly module")
	case binary.LittleEndian.Uint32(wasm[4:]) != 1:
		return nil, abi.New(abi.BadFields, fmt.Sprintf("scan module: binary format version %d, want 1", binary.LittleEndian.Uint32(wasm[4:])))
	}
	m := &Module{Raw: wasm, Mergeable: true}
	if err := m.read(trusted); err != nil {
		return nil, abi.New(abi.BadFields, "scan module: "+err.Error())
	}
	return m, nil
}

// read reads the sections. All but custom sections appear at most once and in the
// order of the standard. Custom sections are not kept, because they are dropped
// before compiling. An empty one takes two bytes of the file.
func (m *Module) read(trusted bool) error {
	r := newReader(m.Raw, 8, len(m.Raw))
	last := 0
	for n := 1; r.left() > 0 && r.err == nil; n++ {
		if n > maxSections {
			return fmt.Errorf("byte %d: more than %d sections", r.off, maxSections)
		}
		id := r.byte()
		size := r.count("bytes of a section", MaxModule)
		s := Section{ID: id, Span: Span{r.off, r.off + size}}
		r.bytes(size)
		if r.err != nil {
			break
		}
		if id == SectionCustom {
			continue
		}
		order := sectionOrder(id)
		if order == 0 {
			return fmt.Errorf("byte %d: section %d is beyond WebAssembly 2.0", s.Start, id)
		}
		if order <= last {
			return fmt.Errorf("byte %d: section %d is repeated or out of order", s.Start, id)
		}
		last = order
		m.Sections = append(m.Sections, s)
		if err := m.readSection(s, trusted); err != nil {
			return err
		}
	}
	if r.err != nil {
		return r.err
	}
	if len(m.Funcs) != len(m.Bodies) {
		return fmt.Errorf("%d functions are declared, %d have a body", len(m.Funcs), len(m.Bodies))
	}
	return nil
}

// sectionOrder returns the position of a section in a module, 0 for an unknown
// id. The data count section precedes the code section although its id is higher.
func sectionOrder(id byte) int {
	switch {
	case id >= SectionType && id <= SectionElement:
		return int(id)
	case id == SectionDataCount:
		return SectionElement + 1
	case id == SectionCode || id == SectionData:
		return int(id) + 1
	}
	return 0
}

// readSection reads one section and checks that nothing is left in it.
func (m *Module) readSection(s Section, trusted bool) error {
	r := newReader(m.Raw, s.Start, s.End)
	r.values = m.values
	switch s.ID {
	case SectionType:
		m.readTypes(r)
	case SectionImport:
		m.readImports(r)
		m.values = make([]bool, m.ImportedFuncs())
	case SectionFunction:
		n := r.count("functions", maxFuncs)
		for m.Funcs = make([]uint32, 0, n); n > 0 && r.err == nil; n-- {
			m.Funcs = append(m.Funcs, m.typeIndex(r))
		}
	case SectionTable:
		for n := r.count("tables", maxTables); n > 0 && r.err == nil; n-- {
			m.Tables = append(m.Tables, readTable(r))
		}
	case SectionMemory:
		if n := r.count("memories", 1); n == 1 {
			m.MemoryMin, _ = readLimits(r, MaxPages, "memory pages")
		}
	case SectionGlobal:
		for n := r.count("globals", maxEntries); n > 0 && r.err == nil; n-- {
			valueType(r)
			r.byte() // mutability
			constExpr(r)
		}
	case SectionExport:
		for n := r.count("exports", maxExports); n > 0 && r.err == nil; n-- {
			ex := Export{Name: r.name(), Kind: r.byte()}
			if ex.Kind == KindFunction {
				ex.Index = r.funcIndex()
			} else {
				ex.Index = r.u32()
			}
			m.Exports = append(m.Exports, ex)
		}
	case SectionStart:
		r.u32() // the host executes it, under the deadline of the call
	case SectionElement:
		for n := r.count("element segments", maxEntries); n > 0 && r.err == nil; n-- {
			readElem(r)
		}
	case SectionDataCount:
		m.Mergeable = false // code may refer to segments by index
		r.u32()
	case SectionCode:
		m.readCode(r, trusted)
	case SectionData:
		n := r.count("data segments", maxEntries)
		for m.Segments = make([]Segment, 0, n); n > 0 && r.err == nil; n-- {
			m.readData(r)
		}
	}
	if r.err == nil && r.left() > 0 {
		r.fail("%d bytes too many in section %d", r.left(), s.ID)
	}
	return r.err
}
