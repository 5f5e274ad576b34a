//go:build wasip1

// Package shim is the least of an SDK that the test guests need.
package shim

import "encoding/binary"

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env free
func free(handle uint64)

//go:wasmimport extism:host/env length
func length(handle uint64) uint64

//go:wasmimport extism:host/env load_u8
func load(at uint64) uint32

//go:wasmimport extism:host/env load_u64
func load64(at uint64) uint64

//go:wasmimport extism:host/env store_u64
func store64(at, v uint64)

//go:wasmimport extism:host/env store_u8
func store(at uint64, b uint32)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoad(at uint64) uint32

//go:wasmimport extism:host/env output_set
func outputSet(handle, n uint64)

//go:wasmimport extism:host/user sentinel_eval
func eval(handle uint64) uint64

// Input returns the input of the call.
func Input() string {
	b := make([]byte, inputLength())
	for i := range b {
		b[i] = byte(inputLoad(uint64(i)))
	}
	return string(b)
}

// Output sets the output of the call.
func Output(text string) { outputSet(put(text), uint64(len(text))) }

// Eval makes a host call.
func Eval(request string) string {
	in := put(request)
	out := eval(in)
	free(in)
	b := make([]byte, length(out))
	words := len(b) &^ 7
	for i := 0; i < words; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], load64(out+uint64(i)))
	}
	for i := words; i < len(b); i++ {
		b[i] = byte(load(out + uint64(i)))
	}
	free(out)
	return string(b)
}

func put(text string) uint64 {
	handle := alloc(uint64(len(text)))
	words := len(text) &^ 7
	for i := 0; i < words; i += 8 {
		store64(handle+uint64(i), binary.LittleEndian.Uint64([]byte(text[i:i+8])))
	}
	for i := words; i < len(text); i++ {
		store(handle+uint64(i), uint32(text[i]))
	}
	return handle
}
