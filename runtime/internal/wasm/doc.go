// Package wasm hosts step plugins: it checks, compiles and calls guest modules,
// each call in a sandbox with bounded memory, time and output.
//
// [Open] makes a [Host], [Host.Load] turns bytes into a [Module], [Module.Run]
// carries out one attempt of one step. The engine that runs the guests stays
// behind this package: nothing exported mentions it, so it can be replaced.
//
// # What a guest can reach
//
// Its own linear memory, the call memory that carries texts in and out, and the
// host functions of sdk/ABI.md that its import section names. There is no file
// system, environment, socket, real clock, real randomness or real sleep: WASI
// answers from the attempt's seed and clock, so that the same input and the same
// answers give the same requests (ABI clause A7), and a parked step is resumed by
// running it again.
//
// # What a load does
//
// Scan the bytes against limits, check imports and exports by name and type,
// rewrite the module so that each function and each bulk instruction can be
// interrupted, join its data segments, compile, describe it in an instance of its
// own, compare what it imports with what it asks for, try its schemas. Nothing of
// the guest runs before the scan has passed, and no host function answers before
// the load is complete. A module that is not Trusted is compiled in a child process,
// which can be killed, and read from the cache; its schemas are tried in such a
// child. See compileApart and trySchemas.
//
// # Which instance serves a call
//
// One of its own, made for the call or ahead of it, in either case from the call's
// seed; see ahead. Stateless modules that are Trusted or allowed so reuse
// theirs; see pool.
//
// # What the engine does that this package must know
//
//   - It checks for a cancelled call at loop heads and leaves the guest there for
//     Go code; that is also what lets the garbage collector stop the guest. See
//     codeSection and bulk.go.
//   - It carries texts between host and guest in a second guest, its call kernel,
//     which costs a call and a new stack of 10 KiB for nearly every byte moved,
//     and which a guest can damage so that a reset prints to the host's stdout.
//     So a guest's kernel imports are renamed when it is loaded and answered
//     from Go memory; see blocks. The engine's own kernel stays empty.
//   - table.grow and deep recursion take memory of the host's own, up to 1 GiB
//     and 50 MB. The first is bounded by a maximum put into the module; the
//     second is not counted in MemoryBytes and freed with the call.
//   - Its memory limit is one for a whole module, so it is set to the host's and
//     the call's own is kept by the arena, which also knows that a trap came from
//     memory that was refused.
//
// # Concurrency
//
// Host and Module are safe for concurrent use. Compiles in this process are
// serialised, since one of a Go guest takes a processor and tens of megabytes for
// a second; those in children hold up nobody, and two run at a time. A Run
// holds the module: Release never closes it under a call.
package wasm
