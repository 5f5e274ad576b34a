package wasm

import (
	"strings"
)

// Info is what the bytes of a module say without running anything.
type Info struct {
	Imports   []Import
	Exports   []Export
	Size      int
	Component bool // a component of the WASI 0.2 kind, which this host cannot run
}

// Import is one entry of the import section.
type Import struct {
	Module, Name string
	Type         string // "(i64) -> i64", or the kind if it is no function
}

// Export is one entry of the export section.
type Export struct {
	Name string
	Type string // "() -> i32", or the kind if it is no function
}

// Inspect reads the sections of a module. It executes and compiles nothing. For
// a component it says so in Info and gives no error.
func Inspect(wasm []byte) (Info, error) {
	info := Info{Size: len(wasm), Component: isComponent(wasm)}
	if info.Component {
		return info, nil
	}
	l, err := scan(wasm, true)
	if err != nil {
		return info, err
	}
	for _, im := range l.imports {
		info.Imports = append(info.Imports, Import{Module: im.module, Name: im.name, Type: l.importType(im)})
	}
	for _, ex := range l.exports {
		info.Exports = append(info.Exports, Export{Name: ex.name, Type: l.exportType(ex)})
	}
	return info, nil
}

// importType describes an import's type.
func (l *layout) importType(im importEntry) string {
	if im.kind != kindFunc {
		return kindName(im.kind)
	}
	return l.types[im.typ].String()
}

// exportType describes an export's type. An index that points nowhere is the
// compiler's to refuse.
func (l *layout) exportType(ex exportEntry) string {
	if ex.kind != kindFunc {
		return kindName(ex.kind)
	}
	index := ex.index
	for _, im := range l.imports {
		if im.kind != kindFunc {
			continue
		}
		if index == 0 {
			return l.types[im.typ].String()
		}
		index--
	}
	if int64(index) < int64(len(l.funcs)) {
		return l.types[l.funcs[index]].String()
	}
	return "a function that is not there"
}

func kindName(kind byte) string {
	switch kind {
	case kindFunc:
		return "function"
	case kindTable:
		return "table"
	case kindMemory:
		return "memory"
	case kindGlobal:
		return "global"
	}
	return "unknown"
}

// String writes a signature as "(i32, i64) -> i32"; several results stand in
// parentheses, none are "()".
func (t funcType) String() string {
	if len(t.results) == 1 {
		return "(" + typeNames(t.params) + ") -> " + typeNames(t.results)
	}
	return "(" + typeNames(t.params) + ") -> (" + typeNames(t.results) + ")"
}

func typeNames(types []byte) string {
	names := make([]string, len(types))
	for i, t := range types {
		switch t {
		case typeI32:
			names[i] = "i32"
		case typeI64:
			names[i] = "i64"
		case typeF32:
			names[i] = "f32"
		case typeF64:
			names[i] = "f64"
		case typeV128:
			names[i] = "v128"
		case typeFuncref:
			names[i] = "funcref"
		default:
			names[i] = "externref"
		}
	}
	return strings.Join(names, ", ")
}
