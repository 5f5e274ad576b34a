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
// # What the engine does that this package must know
//
//   - It checks for a cancelled call at loop heads and leaves the guest there for
//     Go code; that is also what lets the garbage collector stop the guest. See
//     codeSection.
//   - It prints to the host's stdout when the call kernel's reset traps, and the
//     input is written over the kernel's start when there is no room for it. See
//     kernelSound and maxInput.
//   - Each call into the call kernel that the engine forwards (load_u8, store_u8,
//     alloc) makes a new stack of 10 KiB: a guest that moves its texts by bytes
//     is twelve times slower than one that uses load_u64 and store_u64, which it
//     answers itself.
//   - table.grow and deep recursion take memory of the host's own, up to 1 GiB
//     and 50 MB. The first is bounded by a maximum put into the module; the
//     second is not counted in MemoryBytes and freed with the call.
//   - Its memory limit is one for a whole module, so it is set to the host's and
//     the call's own is kept by the arena, which also knows that a trap came from
//     memory that was refused.
//   - It gives the guest's own error and its own through one value; failure tells
//     them apart by what the call kernel holds.
//
// # Concurrency
//
// Host and Module are safe for concurrent use. Compiles are serialised, since
// one of a Go guest takes a processor and tens of megabytes for a second. A Run
// holds the module: Release never closes it under a call.
package wasm
