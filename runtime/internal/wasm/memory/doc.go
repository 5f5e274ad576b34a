// Package memory allocates and counts the memory of guests: their linear memories,
// and the call memories through which host and guest exchange bytes.
//
//   - [Arena] belongs to a host. It reserves address space, keeps it for the next
//     instance, and has one limit for all instances. Beyond it the owner closes idle
//     instances (arena.go, region_*.go).
//   - [Memories] and [Linear] belong to one instance, with the memory limit of its
//     call (linear.go). They have the methods of wazero's allocator.
//   - [CallMemory] belongs to one instance as well. It holds the input, the output and
//     the host calls of one call (call.go).
package memory
