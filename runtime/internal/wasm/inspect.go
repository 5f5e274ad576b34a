package wasm

import "github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"

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
	info := Info{Size: len(wasm), Component: binary.IsComponent(wasm)}
	if info.Component {
		return info, nil
	}
	m, err := binary.Scan(wasm, true)
	if err != nil {
		return info, err
	}
	for _, im := range m.Imports {
		info.Imports = append(info.Imports, Import{Module: im.Module, Name: im.Name, Type: m.ImportType(im)})
	}
	for _, ex := range m.Exports {
		info.Exports = append(info.Exports, Export{Name: ex.Name, Type: m.ExportType(ex)})
	}
	return info, nil
}
