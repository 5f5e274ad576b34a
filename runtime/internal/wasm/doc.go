// Package wasm hosts step plugins. It checks, compiles and calls guest modules, each
// call in a sandbox with limits on memory, time and output.
//
// [Open] opens a [Host], [Host.Load] turns bytes into a [Module], and [Module.Run]
// executes one attempt of one step. The package uses the Extism SDK on wazero. No
// exported identifier mentions their types, so that they can be replaced.
//
// # What a guest can reach
//
// A guest reaches its linear memory, the call memory with its input, output and host
// calls, and the host functions of sdk/ABI.md that it imports. It has no file system,
// environment, socket, real clock, real randomness or real sleep. WASI answers from
// the seed and the clock of the attempt, so that equal input and equal replies give
// equal requests (ABI clause A7), and a parked step is resumed by a replay.
//
// # The path of a module
//
//  1. scan: decode the bytes, check every limit, estimate the time of a compile
//     (package binary). No code of a guest is compiled or executed before.
//  2. link: check the names and types of imports and exports (package link).
//  3. rewrite: make every function and every bulk instruction interruptible, give the
//     kernel imports to the call memory, bound tables, merge data segments
//     (package rewrite).
//  4. compile: in a child process unless the module is trusted, with the machine code
//     in the cache (compile.go, compile_child.go, child.go, package compilecache).
//  5. describe: get the manifest in a first instance, compare its permissions with the
//     imports, check its schemas (describe*.go, package manifest). load.go has the
//     steps so far.
//  6. instance: take an idle one from the pool, take a prewarmed one, or create one
//     (instance_*.go, package pool). Its linear memory comes from package memory.
//  7. run: call the export and check the output (run.go). call.go has the deadlines,
//     host_call.go answers host calls, call_memory_imports.go exchanges bytes,
//     package clock is the guest's time and randomness, wasi.go guards WASI calls.
//  8. close: the last Release of a module, or [Host.Close], frees its instances and its
//     code (module.go, host.go).
//
// # Which instance serves a call
//
// Each call has an instance of its own with the seed of the call, created for it or
// prewarmed; see prewarmer. Stateless modules that are Trusted, or that the operator
// allowed it for, reuse instances; see package pool.
//
// # Properties of wazero and the SDK
//
//   - wazero checks for a cancelled call at loop heads, where the guest returns to Go
//     code. Only there can the garbage collector stop the guest. See package
//     rewrite.
//   - The SDK exchanges bytes with a guest through a second guest, its kernel, which
//     costs a call with a new stack of 10 KiB for nearly every byte. A guest can damage
//     the kernel so that a reset prints to the stdout of the host. The kernel imports of
//     a guest are therefore renamed during the load and served from Go memory; see
//     package memory. The SDK's kernel stays empty.
//   - table.grow and deep recursion take host memory, up to 1 GiB and 50 MB. The
//     rewrite bounds the first by a maximum in the module. The second is not counted in
//     MemoryBytes and is freed with the call.
//   - wazero's memory limit holds for a module. It is set to the limit of the host. The
//     arena has the limit of the call, and knows which traps follow a refused growth.
//
// # Concurrency
//
// Host and Module are safe for concurrent use. Compiles in this process are
// serialised, because one of a Go guest takes a processor and tens of megabytes for a
// second. Compiles in children block no other load; two run at a time. A Run keeps its
// module open: Release never closes it during a call.
package wasm
