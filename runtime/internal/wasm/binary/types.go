package binary

import "strings"

// Value types of WebAssembly 2.0.
const (
	I32       = 0x7f
	I64       = 0x7e
	F32       = 0x7d
	F64       = 0x7c
	V128      = 0x7b
	Funcref   = 0x70
	Externref = 0x6f
)

// FormFunction begins a function type.
const FormFunction = 0x60

// FuncType is the signature of a function, in value types.
type FuncType struct{ Params, Results []byte }

// ImportType returns the type of an import, for people.
func (m *Module) ImportType(im Import) string {
	if im.Kind != KindFunction {
		return kindName(im.Kind)
	}
	return m.Types[im.Type].String()
}

// ExportType returns the type of an export, for people. The compiler rejects an index
// out of range.
func (m *Module) ExportType(ex Export) string {
	if ex.Kind != KindFunction {
		return kindName(ex.Kind)
	}
	index := ex.Index
	for _, im := range m.Imports {
		if im.Kind != KindFunction {
			continue
		}
		if index == 0 {
			return m.Types[im.Type].String()
		}
		index--
	}
	if int64(index) < int64(len(m.Funcs)) {
		return m.Types[m.Funcs[index]].String()
	}
	return "a function with an index out of range"
}

func kindName(kind byte) string {
	switch kind {
	case KindFunction:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return "unknown"
}

// String returns a signature such as "(i32, i64) -> i32". Several results, and none,
// are in parentheses.
func (t FuncType) String() string {
	if len(t.Results) == 1 {
		return "(" + typeNames(t.Params) + ") -> " + typeNames(t.Results)
	}
	return "(" + typeNames(t.Params) + ") -> (" + typeNames(t.Results) + ")"
}

func typeNames(types []byte) string {
	names := make([]string, len(types))
	for i, t := range types {
		switch t {
		case I32:
			names[i] = "i32"
		case I64:
			names[i] = "i64"
		case F32:
			names[i] = "f32"
		case F64:
			names[i] = "f64"
		case V128:
			names[i] = "v128"
		case Funcref:
			names[i] = "funcref"
		default:
			names[i] = "externref"
		}
	}
	return strings.Join(names, ", ")
}
