package binary

// Section ids of the binary format.
const (
	SectionCustom    = 0
	SectionType      = 1
	SectionImport    = 2
	SectionFunction  = 3
	SectionTable     = 4
	SectionMemory    = 5
	SectionGlobal    = 6
	SectionExport    = 7
	SectionStart     = 8
	SectionElement   = 9
	SectionCode      = 10
	SectionData      = 11
	SectionDataCount = 12
)

// Kinds of imports and exports.
const (
	KindFunction = 0
	KindTable    = 1
	KindMemory   = 2
	KindGlobal   = 3
)

// PageSize is the unit of linear memory in bytes.
const PageSize = 64 << 10

// WASIModule is the import module of WASI.
const WASIModule = "wasi_snapshot_preview1"

// Module is the structure of a module, the result of a [Scan].
type Module struct {
	Raw       []byte
	Sections  []Section  // without custom sections
	Types     []FuncType // by index, like all lists below
	Imports   []Import   // imported functions have the lowest function indices
	Funcs     []uint32   // type index of each function that the module defines
	Tables    []Table
	Exports   []Export
	Bodies    []Body
	BulkCalls bool // an instruction becomes a call, [CallFill] or [CallCopy]
	// MemoryMin is the size of the memory at the start, in pages.
	MemoryMin uint32
	// Segments lists all data segments if each is active, of memory 0 and at a
	// constant offset. Otherwise Mergeable is false and Segments is incomplete.
	Segments  []Segment
	Mergeable bool

	// values marks, by index, the imported functions that are exported, elements
	// or values of globals. Only those can be called through a table.
	values []bool
	points interruptPoints
}

// Span is a range of the module's bytes.
type Span struct{ Start, End int }

// Section is one section. Its span is the content, without id and size.
type Section struct {
	ID byte
	Span
}

// Import is one import. Its span is its name, with the length before it, and its
// description: what follows the import module.
type Import struct {
	Module, Name string
	Kind         byte
	Type         uint32 // type index of a function
	Span
}

// Export is one export.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// Table is a table that the module defines. Max is [MaxTable] if the module sets
// none.
type Table struct {
	Min, Max uint32
	Elem     byte
}

// Body is one function body. Its locals end where its code begins.
type Body struct {
	Span
	Code int
	// Bulk reports that the code has instructions that the rewrite changes. It is
	// false in a trusted module.
	Bulk bool
}

// Segment is an active data segment of memory 0 with a constant offset.
type Segment struct {
	Offset uint32
	Data   Span
}

// ImportedFuncs returns the number of imported functions.
func (m *Module) ImportedFuncs() (n int) {
	for _, im := range m.Imports {
		if im.Kind == KindFunction {
			n++
		}
	}
	return n
}
