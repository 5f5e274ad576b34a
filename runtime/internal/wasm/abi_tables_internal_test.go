package wasm

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"

	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestKernelTable compares clause A1.7 with the kernel functions that a guest may
// import.
func TestKernelTable(t *testing.T) {
	if diff := cmp.Diff(kernelSignatures, abidoc.Map(t, "A1.7")); diff != "" {
		t.Errorf("sdk/ABI.md A1.7 (-code +table):\n%s", diff)
	}
}

// TestWASITable compares clause A1.8 with the WASI functions that a guest may
// import.
func TestWASITable(t *testing.T) {
	offered, err := wasiSignatures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(offered, abidoc.Map(t, "A1.8")); diff != "" {
		t.Errorf("sdk/ABI.md A1.8 (-code +table):\n%s", diff)
	}
}

// proposals has a module for each way in which a proposal of clause A1.9 shows.
// A module of a proposal that is offered is valid.
var proposals = map[string][][]byte{
	"mutable globals":                               {module(sect(secGlobal, 1, typeI32, 1, 0x41, 0, 0x0b), sect(secExport, 1, 1, 'g', kindGlobal, 0))},
	"sign extension":                                {oneFunction(0x41, 0, 0xc0, 0x1a)},
	"non-trapping float-to-int conversion":          {oneFunction(0x43, 0, 0, 0, 0, 0xfc, 0, 0x1a)},
	"multi-value":                                   {module(sect(secType, 1, typeFunc, 0, 2, typeI32, typeI32), sect(secFunc, 1, 0), codeSection(0x41, 0, 0x41, 0))},
	"bulk memory operations":                        {withMemory(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0)},
	"reference types":                               {oneFunction(0xd0, typeExtern, 0x1a)},
	"fixed-width SIMD":                              {oneFunction(0x41, 0, 0xfd, 15, 0x1a)},
	"tail calls":                                    {oneFunction(0x12, 0), oneFunction(0x13, 0, 0)},
	"exception handling":                            {oneFunction(0x06, 0x40, 0x0b), oneFunction(0x08, 0), oneFunction(0x1f, 0x40, 0, 0x0b), module(sect(13, 1, 0, 0))},
	"threads: atomics, shared memory":               {withMemory(0xfe, 3, 0), module(sect(secMemory, 1, 3, 1, 1))},
	"multiple memories":                             {module(sect(secMemory, 2, 0, 1, 0, 1))},
	"64-bit memory":                                 {module(sect(secMemory, 1, 4, 1))},
	"extended constant expressions":                 {module(sect(secGlobal, 1, typeI32, 0, 0x41, 1, 0x41, 1, 0x6a, 0x0b))},
	"garbage collection, typed function references": {module(sect(secType, 1, 0x5f, 0)), oneFunction(0xfb, 0, 0), oneFunction(0x14, 0)},
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
			_, err := scan(m, false)
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
	return sect(secCode, append([]byte{1, byte(len(body))}, body...)...)
}

// oneFunction is a module with one function without parameters and results.
func oneFunction(instructions ...byte) []byte {
	return module(sect(secType, 1, typeFunc, 0, 0), sect(secFunc, 1, 0), codeSection(instructions...))
}

// withMemory is such a module that has a memory too.
func withMemory(instructions ...byte) []byte {
	return module(sect(secType, 1, typeFunc, 0, 0), sect(secFunc, 1, 0), sect(secMemory, 1, 0, 1), codeSection(instructions...))
}

// TestLimitTables compares the limits of this package with clauses A8.1, A8.2 and
// A8.4.
func TestLimitTables(t *testing.T) {
	l := Invocation{}.withDefaults().Limits
	abidoc.Want(t, "A8.1", map[string]string{
		"linear memory":                         abidoc.Bytes(l.MemoryBytes) + "; plugin allow --memory lowers it or raises it, to 1 GiB at most, within the run's maxMemoryMb",
		"output of run":                         abidoc.Bytes(l.OutputBytes),
		"text on stdout and stderr of one call": abidoc.Bytes(l.LogBytes),
		"manifest":                              abidoc.Bytes(maxManifest),
		"run input":                             abidoc.Bytes(maxInput),
		"call memory (A1.7)":                    fmt.Sprintf("%s more than linear memory; each block counts %d bytes more than its size rounded up to 8", abidoc.Bytes(callMemorySpare), blockCost),
		"error text of error_set":               abidoc.Bytes(maxGuestError),
		"text kept of standard error":           abidoc.Bytes(maxTail),
		"describe: time, A8.8":                  seconds(describeTime),
		"validate: time the guest computes, and time it sleeps (A7.1)": seconds(auxTimeout),
	})
	if l.MessageBytes != 256<<10 {
		t.Errorf("a message has at most %d bytes, A8.1 says 256 KiB", l.MessageBytes)
	}
	opt, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opt.Close()
	want := map[string]string{
		"file":                           abidoc.Bytes(maxModule),
		"sections, custom ones included": abidoc.Count(maxSections),
		"functions":                      abidoc.Count(maxFuncs),
		"one function":                   fmt.Sprintf("%s of code, %s locals, %s parameters, %s results", abidoc.Bytes(maxBody), abidoc.Count(maxLocals), abidoc.Count(maxArity), abidoc.Count(maxArity)),
		"locals of all functions":        abidoc.Count(maxAllLocal),
		"types":                          abidoc.Count(maxTypes),
		"imports":                        abidoc.Count(maxImports),
		"exports":                        abidoc.Count(maxExports),
		"globals, data segments, element segments, elements of one segment, targets of one branch table": abidoc.Count(maxEntries) + " each",
		"tables":                       fmt.Sprintf("%d, of %s entries each; table.grow beyond that returns -1", maxTables, abidoc.Count(maxTable)),
		"memories":                     fmt.Sprintf("1, of %s at its start", abidoc.Bytes(opt.maxMemory)),
		"names of imports and exports": abidoc.Bytes(maxName) + " each",
		"estimated time to compile":    fmt.Sprintf("%d minute a function, %d minutes in all; the estimate counts branches, loops and locals in use and is high", maxCost/time.Minute, maxAllCost/time.Minute),
		"compiling":                    fmt.Sprintf("%s of processor, %d minutes, %s of memory, in a child process", seconds(opt.compileTime), 4*opt.compileTime/time.Minute, abidoc.Bytes(opt.compileMemory)),
	}
	if diff := cmp.Diff(want, abidoc.Map(t, "A8.2")); diff != "" {
		t.Errorf("sdk/ABI.md A8.2 (-code +table):\n%s", diff)
	}
	abidoc.Want(t, "A8.4", map[string]string{
		"compiling all of them": fmt.Sprintf("%s of processor, %s of memory, in a child process", seconds(schemaTime), abidoc.Bytes(schemaMemory)),
	})
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", d/time.Second) }
