package wasm

import "strings"

// Info describes a module without executing it.
type Info struct {
	Imports   []Import
	Exports   []Export
	Size      int
	Component bool // a component of WASI 0.2, which this host cannot execute
}

// Import is one entry of the import section.
type Import struct {
	Module, Name string
	Type         string // "(i64) -> i64", or the kind of an import other than a function
}

// Export is one entry of the export section.
type Export struct {
	Name string
	Type string // "() -> i32", or the kind of an export other than a function
}

// Inspect reads the sections of a module. It executes and compiles nothing. A
// component is reported in Info, without an error.
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

// importType returns the type of an import, for people.
func (l *layout) importType(im importEntry) string {
	if im.kind != kindFunc {
		return kindName(im.kind)
	}
	return l.types[im.typ].String()
}

// exportType returns the type of an export, for people. The compiler rejects an index
// out of range.
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
	return "a function with an index out of range"
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

// String returns a signature such as "(i32, i64) -> i32". Several results, and none,
// are in parentheses.
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
