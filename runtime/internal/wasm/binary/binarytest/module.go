// Package binarytest builds small WebAssembly modules for tests, byte by byte. A
// module may be invalid.
package binarytest

import "github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"

// Module returns a module with sections, each of which is an id and its content.
func Module(sections ...string) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		out = append(out, s[0])
		out = binary.AppendU32(out, uint32(len(s)-1))
		out = append(out, s[1:]...)
	}
	return out
}
