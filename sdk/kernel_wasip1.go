//go:build wasip1

package sdk

import "unsafe"

// The memory of the Extism kernel: blocks of bytes behind handles, outside the
// guest's own memory, read and written eight bytes at a time.

//go:wasmimport extism:host/env alloc
func kernelAlloc(n uint64) uint64

//go:wasmimport extism:host/env free
func kernelFree(handle uint64)

//go:wasmimport extism:host/env length
func kernelLength(handle uint64) uint64

//go:wasmimport extism:host/env load_u8
func kernelLoad8(offset uint64) uint32

//go:wasmimport extism:host/env load_u64
func kernelLoad64(offset uint64) uint64

//go:wasmimport extism:host/env store_u8
func kernelStore8(offset uint64, b uint32)

//go:wasmimport extism:host/env store_u64
func kernelStore64(offset, v uint64)

//go:wasmimport extism:host/env input_length
func kernelInputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func kernelInput8(offset uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func kernelInput64(offset uint64) uint64

//go:wasmimport extism:host/env output_set
func kernelOutput(handle, n uint64)

//go:wasmimport extism:host/env error_set
func kernelError(handle uint64)

// The host functions, clause A6 of ABI.md.

//go:wasmimport extism:host/user sentinel_command
func importCommand(request uint64) uint64

//go:wasmimport extism:host/user sentinel_llm
func importLLM(request uint64) uint64

//go:wasmimport extism:host/user sentinel_watch
func importWatch(request uint64) uint64

//go:wasmimport extism:host/user sentinel_eval
func importEval(request uint64) uint64

//go:wasmimport extism:host/user sentinel_var
func importVar(request uint64) uint64

//go:wasmimport extism:host/user sentinel_block
func importBlock(request uint64) uint64

//go:wasmimport extism:host/user sentinel_spawn
func importSpawn(request uint64) uint64

//go:wasmimport extism:host/user sentinel_emit
func importEmit(request uint64) uint64

//go:wasmimport extism:host/user sentinel_wait
func importWait(request uint64) uint64

//go:wasmimport extism:host/user sentinel_checkpoint
func importCheckpoint(request uint64) uint64

//go:wasmimport extism:host/user sentinel_http
func importHTTP(request uint64) uint64

//go:wasmimport extism:host/user sentinel_log
func importLog(request uint64) uint64

//go:wasmimport extism:host/user sentinel_now
func importNow(request uint64) uint64

//go:wasmimport extism:host/user sentinel_file
func importFile(request uint64) uint64

// hostFunc is one of the host functions.
type hostFunc func(request uint64) (answer uint64)

// callHost passes a request and returns the answer. It frees both blocks: the host
// has read the request before it answers, and keeps neither.
func callHost(f hostFunc, request string) string {
	in := store(request)
	out := f(in)
	kernelFree(in)
	answer := load(out)
	kernelFree(out)
	return answer
}

// store copies a text into a new block.
func store(s string) uint64 {
	handle := kernelAlloc(uint64(len(s)))
	i := 0
	for at := unsafe.Pointer(unsafe.StringData(s)); i+8 <= len(s); i += 8 { // WebAssembly has the order of the kernel, and no alignment
		kernelStore64(handle+uint64(i), *(*uint64)(unsafe.Add(at, i)))
	}
	for ; i < len(s); i++ {
		kernelStore8(handle+uint64(i), uint32(s[i]))
	}
	return handle
}

// load copies a block out; the handle 0 is an empty one.
func load(handle uint64) string {
	if handle == 0 {
		return ""
	}
	return read(kernelLength(handle),
		func(i uint64) uint64 { return kernelLoad64(handle + i) },
		func(i uint64) uint32 { return kernelLoad8(handle + i) })
}

// input copies the input of the export out.
func input() string { return read(kernelInputLength(), kernelInput64, kernelInput8) }

func read(n uint64, word func(uint64) uint64, single func(uint64) uint32) string {
	buf := make([]byte, n)
	i := uint64(0)
	for at := unsafe.Pointer(unsafe.SliceData(buf)); i+8 <= n; i += 8 {
		*(*uint64)(unsafe.Add(at, i)) = word(i)
	}
	for ; i < n; i++ {
		buf[i] = byte(single(i))
	}
	return unsafe.String(unsafe.SliceData(buf), len(buf)) // nothing writes it any more
}
