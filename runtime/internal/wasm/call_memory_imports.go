package wasm

import (
	"encoding/binary"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// textModule is the import module that a guest's kernel imports are renamed to
// when it is loaded, so that [blocks] answers them. The few of them that are not
// in kernelFunctions stay with the engine, which has nothing to give for them.
const textModule = "sentinel:text"

// A kernelFunc answers one kernel import: its parameters are on the stack and
// its result takes their place.
type kernelFunc func(b *blocks, c *call, stack []uint64)

// kernelFunctions are the kernel imports that the call memory answers. Their
// types are those of the table kernel in link.go.
var kernelFunctions = map[string]kernelFunc{
	"alloc": func(b *blocks, c *call, s []uint64) {
		handle, err := b.alloc(s[0])
		if err != nil {
			c.unwind(err)
		}
		s[0] = handle
	},
	"free":          func(b *blocks, _ *call, s []uint64) { b.free(s[0]) },
	"length":        func(b *blocks, _ *call, s []uint64) { s[0] = b.length(s[0]) },
	"length_unsafe": func(b *blocks, _ *call, s []uint64) { s[0] = b.length(s[0]) },
	"load_u8":       func(b *blocks, c *call, s []uint64) { s[0] = uint64(c.text(b, s[0], 1)[0]) },
	"load_u64":      func(b *blocks, c *call, s []uint64) { s[0] = binary.LittleEndian.Uint64(c.text(b, s[0], 8)) },
	"store_u8":      func(b *blocks, c *call, s []uint64) { c.text(b, s[0], 1)[0] = byte(s[1]) },
	"store_u64":     func(b *blocks, c *call, s []uint64) { binary.LittleEndian.PutUint64(c.text(b, s[0], 8), s[1]) },

	"input_set":      func(b *blocks, _ *call, s []uint64) { b.input, b.inputSize = s[0], s[1] },
	"input_length":   func(b *blocks, _ *call, s []uint64) { s[0] = b.inputSize },
	"input_offset":   func(b *blocks, _ *call, s []uint64) { s[0] = b.input },
	"input_load_u8":  func(b *blocks, c *call, s []uint64) { s[0] = uint64(c.text(b, b.input+s[0], 1)[0]) },
	"input_load_u64": func(b *blocks, c *call, s []uint64) { s[0] = binary.LittleEndian.Uint64(c.text(b, b.input+s[0], 8)) },

	"output_set":    func(b *blocks, _ *call, s []uint64) { b.output, b.outputSize = s[0], s[1] },
	"output_length": func(b *blocks, _ *call, s []uint64) { s[0] = b.outputSize },
	"output_offset": func(b *blocks, _ *call, s []uint64) { s[0] = b.output },
	"error_set":     func(b *blocks, _ *call, s []uint64) { b.fault = s[0] },
	"error_get":     func(b *blocks, _ *call, s []uint64) { s[0] = b.fault },
	"reset":         func(b *blocks, _ *call, _ []uint64) { b.reset() },
	"memory_bytes":  func(b *blocks, _ *call, s []uint64) { s[0] = uint64(b.used) },

	// A PDK's own log lines go nowhere, sentinel_log is for them; they end the
	// block that held the line.
	"log_trace": func(b *blocks, _ *call, s []uint64) { b.free(s[0]) },
	"log_debug": func(b *blocks, _ *call, s []uint64) { b.free(s[0]) },
	"log_info":  func(b *blocks, _ *call, s []uint64) { b.free(s[0]) },
	"log_warn":  func(b *blocks, _ *call, s []uint64) { b.free(s[0]) },
	"log_error": func(b *blocks, _ *call, s []uint64) { b.free(s[0]) },
}

// text returns n bytes of the call memory, or ends the guest as an access
// outside its own memory does.
func (c *call) text(b *blocks, addr, n uint64) []byte {
	data := b.bytes(addr, n)
	if data == nil {
		c.unwind(abi.New(abi.Trap, fmt.Sprintf("the plugin trapped: no text is at address %d of its call memory", addr)))
	}
	return data
}

// kernelImports returns the imports that are renamed, with their types, which
// checkImports has compared.
func (l *layout) kernelImports() map[string]funcType {
	found := map[string]funcType{}
	for _, im := range l.imports {
		if im.renamed() {
			found[im.name] = l.types[im.typ]
		}
	}
	return found
}

func (im importEntry) renamed() bool {
	return im.module == kernelModule && im.kind == kindFunc && kernelFunctions[im.name] != nil
}

// importSection writes the imports with those of kernelFunctions renamed.
func (l *layout) importSection(content []byte) []byte {
	r := newReader(content, 0, len(content))
	out := appendU32(make([]byte, 0, len(content)), r.u32())
	for _, im := range l.imports {
		r.name()
		start := r.off
		r.name()
		l.readImport(r)
		module := im.module
		if im.renamed() {
			module = textModule
		}
		out = append(appendU32(out, uint32(len(module))), module...)
		out = append(out, content[start:r.off]...)
	}
	return out
}
