// Package binary decodes the WebAssembly binary format: the structure of a module,
// and its code as far as its cost and its interruption need.
//
// [Scan] turns bytes into a [Module], or rejects them. It is the first thing that
// happens to a file that is not trusted, before anything compiles or executes it, so every
// count is checked before memory is allocated for it, and the estimated time of a
// compile is bounded. Package rewrite changes a scanned module; package wasm checks
// its imports and exports.
//
//   - reader.go reads numbers, names and vectors, sections.go and code.go the sections;
//   - cost.go estimates how long the compiler takes for a function;
//   - interrupt.go finds the instructions that take long in native code;
//   - types.go has the text form of types.
//
// # Concurrency
//
// A Module is not changed after its scan and can be read by several goroutines.
package binary
