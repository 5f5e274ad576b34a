//go:build wasip1

package sdk

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
	for ; i+8 <= len(s); i += 8 {
		w := s[i : i+8]
		kernelStore64(handle+uint64(i), uint64(w[0])|uint64(w[1])<<8|uint64(w[2])<<16|uint64(w[3])<<24|
			uint64(w[4])<<32|uint64(w[5])<<40|uint64(w[6])<<48|uint64(w[7])<<56)
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
	buf := make([]byte, 0, n+8)
	i := uint64(0)
	for ; i+8 <= n; i += 8 {
		w := word(i)
		buf = append(buf, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56))
	}
	for ; i < n; i++ {
		buf = append(buf, byte(single(i)))
	}
	return string(buf)
}
