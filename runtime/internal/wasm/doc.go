// Package wasm hosts step plugins: it checks, compiles and calls guest modules,
// each call in a sandbox with bounded memory, time and output.
//
// [Open] makes a [Host], [Host.Load] turns bytes into a [Module], [Module.Run]
// carries out one attempt of one step. The engine that runs the guests stays
// behind this package: nothing exported mentions it, so it can be replaced.
//
// # What a guest can reach
//
// Its own linear memory, the call kernel that carries texts in and out, and the
// host functions of sdk/ABI.md that its import section names. There is no file
// system, environment, socket, real clock, real randomness or real sleep: WASI
// answers from the attempt's seed and clock, so that the same input and the same
// answers give the same requests (ABI clause A7), and a parked step is resumed by
// running it again.
//
// # What a load does
//
// Scan the bytes against limits, check imports and exports by name and type,
// rewrite the module so that each function can be interrupted, join its data
// segments, compile, describe it in an instance of its own, compare what it imports
// with what it asks for. Nothing of the guest runs before the scan has passed, and
// no host function answers before the load is complete.
//
// # Concurrency
//
// Host and Module are safe for concurrent use. Compiles are serialised, since
// one of a Go guest takes a processor and tens of megabytes for a second. A Run
// holds the module: Release never closes it under a call.
package wasm
