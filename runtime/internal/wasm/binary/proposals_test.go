package binary_test

import (
	"context"
	"maps"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary/binarytest"
	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
	"github.com/tetratelabs/wazero"
)

// proposals has a module for each way in which a proposal of clause A1.9 shows.
// A module of a proposal that is offered is valid.
var proposals = map[string][][]byte{
	"mutable globals":                               {binarytest.Module(sect(binary.SectionGlobal, 1, binary.I32, 1, 0x41, 0, 0x0b), sect(binary.SectionExport, 1, 1, 'g', binary.KindGlobal, 0))},
	"sign extension":                                {oneFunction(0x41, 0, 0xc0, 0x1a)},
	"non-trapping float-to-int conversion":          {oneFunction(0x43, 0, 0, 0, 0, 0xfc, 0, 0x1a)},
	"multi-value":                                   {binarytest.Module(sect(binary.SectionType, 1, binary.FormFunction, 0, 2, binary.I32, binary.I32), sect(binary.SectionFunction, 1, 0), codeSection(0x41, 0, 0x41, 0))},
	"bulk memory operations":                        {withMemory(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0)},
	"reference types":                               {oneFunction(0xd0, binary.Externref, 0x1a)},
	"fixed-width SIMD":                              {oneFunction(0x41, 0, 0xfd, 15, 0x1a)},
	"tail calls":                                    {oneFunction(0x12, 0), oneFunction(0x13, 0, 0)},
	"exception handling":                            {oneFunction(0x06, 0x40, 0x0b), oneFunction(0x08, 0), oneFunction(0x1f, 0x40, 0, 0x0b), binarytest.Module(sect(13, 1, 0, 0))},
	"threads: atomics, shared memory":               {withMemory(0xfe, 3, 0), binarytest.Module(sect(binary.SectionMemory, 1, 3, 1, 1))},
	"multiple memories":                             {binarytest.Module(sect(binary.SectionMemory, 2, 0, 1, 0, 1))},
	"64-bit memory":                                 {binarytest.Module(sect(binary.SectionMemory, 1, 4, 1))},
	"extended constant expressions":                 {binarytest.Module(sect(binary.SectionGlobal, 1, binary.I32, 0, 0x41, 1, 0x41, 1, 0x6a, 0x0b))},
	"garbage collection, typed function references": {binarytest.Module(sect(binary.SectionType, 1, 0x5f, 0)), oneFunction(0xfb, 0, 0), oneFunction(0x14, 0)},
	"relaxed SIMD":                                  {oneFunction(0xfd, 0x80, 0x02)},
	"component model":                               {[]byte("\x00asm\x0d\x00\x01\x00")},
}

// TestProposals compares clause A1.9 with what a scan accepts, and what it accepts
// with what wazero compiles.
func TestProposals(t *testing.T) {
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(context.Background())
	table := abidoc.Map(t, "A1.9")
	for name := range maps.Keys(table) {
		if proposals[name] == nil {
			t.Errorf("sdk/ABI.md A1.9: no module tests %q", name)
		}
	}
	for name, modules := range proposals {
		for i, m := range modules {
			_, err := binary.Scan(m, false)
			if err == nil {
				_, err = rt.CompileModule(t.Context(), m)
			}
			if offered := table[name] == "yes"; offered != (err == nil) || !offered && table[name] != "no" {
				t.Errorf("sdk/ABI.md A1.9: %s is %q, module %d gives %v", name, table[name], i, err)
			}
		}
	}
}

// sect is a section for module.
func sect(id byte, content ...byte) string { return string(append([]byte{id}, content...)) }

// codeSection is a code section with one function.
func codeSection(instructions ...byte) string {
	body := append(append([]byte{0}, instructions...), 0x0b)
	return sect(binary.SectionCode, append([]byte{1, byte(len(body))}, body...)...)
}

// oneFunction is a module with one function without parameters and results.
func oneFunction(instructions ...byte) []byte {
	return binarytest.Module(sect(binary.SectionType, 1, binary.FormFunction, 0, 0), sect(binary.SectionFunction, 1, 0), codeSection(instructions...))
}

// withMemory is such a module that has a memory too.
func withMemory(instructions ...byte) []byte {
	return binarytest.Module(sect(binary.SectionType, 1, binary.FormFunction, 0, 0), sect(binary.SectionFunction, 1, 0), sect(binary.SectionMemory, 1, 0, 1), codeSection(instructions...))
}
