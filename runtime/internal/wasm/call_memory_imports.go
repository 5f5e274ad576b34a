package wasm

import (
	stdbinary "encoding/binary"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/link"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/memory"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// callMemoryModule is the import module that the rewrite gives to a guest's kernel
// imports, so that [memory.CallMemory] serves them. The kernel functions that are not in
// callMemoryFuncs stay with the SDK, where they have no data.
const callMemoryModule = "sentinel:call_memory"

// callMemoryFunc serves one kernel import. Its parameters are on the stack, and
// its result replaces the first of them.
type callMemoryFunc func(m *memory.CallMemory, c *call, stack []uint64)

// callMemoryFuncs are the kernel imports that the call memory serves. Their types
// are those that package link checks.
var callMemoryFuncs = map[string]callMemoryFunc{
	"alloc": func(m *memory.CallMemory, c *call, s []uint64) {
		handle, err := m.Alloc(s[0])
		if err != nil {
			c.unwind(err)
		}
		s[0] = handle
	},
	"free":          func(m *memory.CallMemory, _ *call, s []uint64) { m.Free(s[0]) },
	"length":        func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = m.Length(s[0]) },
	"length_unsafe": func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = m.Length(s[0]) },
	"load_u8":       func(m *memory.CallMemory, c *call, s []uint64) { s[0] = uint64(c.bytesAt(m, s[0], 1)[0]) },
	"load_u64": func(m *memory.CallMemory, c *call, s []uint64) {
		c.copied += 8
		s[0] = stdbinary.LittleEndian.Uint64(c.bytesAt(m, s[0], 8))
	},
	"store_u8": func(m *memory.CallMemory, c *call, s []uint64) { c.bytesAt(m, s[0], 1)[0] = byte(s[1]) },
	"store_u64": func(m *memory.CallMemory, c *call, s []uint64) {
		c.copied += 8
		stdbinary.LittleEndian.PutUint64(c.bytesAt(m, s[0], 8), s[1])
	},

	"input_set":     func(m *memory.CallMemory, _ *call, s []uint64) { m.Input, m.InputSize = s[0], s[1] },
	"input_length":  func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = m.InputSize },
	"input_offset":  func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = m.Input },
	"input_load_u8": func(m *memory.CallMemory, c *call, s []uint64) { s[0] = uint64(c.bytesAt(m, m.Input+s[0], 1)[0]) },
	"input_load_u64": func(m *memory.CallMemory, c *call, s []uint64) {
		c.copied += 8
		s[0] = stdbinary.LittleEndian.Uint64(c.bytesAt(m, m.Input+s[0], 8))
	},

	"output_set":    func(m *memory.CallMemory, _ *call, s []uint64) { m.Output, m.OutputSize = s[0], s[1] },
	"output_length": func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = m.OutputSize },
	"output_offset": func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = m.Output },
	"error_set":     func(m *memory.CallMemory, _ *call, s []uint64) { m.Fault = s[0] },
	"error_get":     func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = m.Fault },
	"reset":         func(m *memory.CallMemory, _ *call, _ []uint64) { m.Reset() },
	"memory_bytes":  func(m *memory.CallMemory, _ *call, s []uint64) { s[0] = uint64(m.Used()) },

	// The log lines of a PDK are dropped, because guests log with sentinel_log. The
	// functions free the block of the line, as the kernel's do.
	"log_trace": func(m *memory.CallMemory, _ *call, s []uint64) { m.Free(s[0]) },
	"log_debug": func(m *memory.CallMemory, _ *call, s []uint64) { m.Free(s[0]) },
	"log_info":  func(m *memory.CallMemory, _ *call, s []uint64) { m.Free(s[0]) },
	"log_warn":  func(m *memory.CallMemory, _ *call, s []uint64) { m.Free(s[0]) },
	"log_error": func(m *memory.CallMemory, _ *call, s []uint64) { m.Free(s[0]) },
}

// importModule returns the import module of an import after the rewrite.
func importModule(im binary.Import) string {
	if served(im) {
		return callMemoryModule
	}
	return im.Module
}

// served reports whether the call memory serves an import.
func served(im binary.Import) bool {
	return im.Module == link.KernelModule && im.Kind == binary.KindFunction && callMemoryFuncs[im.Name] != nil
}

// servedImports returns the types of the imports that the call memory serves, by
// name. link.Imports has checked them.
func servedImports(m *binary.Module) map[string]binary.FuncType {
	found := map[string]binary.FuncType{}
	for _, im := range m.Imports {
		if served(im) {
			found[im.Name] = m.Types[im.Type]
		}
	}
	return found
}

// bytesAt returns n bytes of the call memory. It ends the guest with a trap if no
// block contains them, like an access outside of linear memory.
func (c *call) bytesAt(m *memory.CallMemory, addr, n uint64) []byte {
	data := m.Bytes(addr, n)
	if data == nil {
		c.unwind(abi.New(abi.Trap, fmt.Sprintf("the plugin trapped: no text is at address %d of its call memory", addr)))
	}
	return data
}
