// Package health watches what an engine needs to execute runs: a store that takes
// commits, free space on the disk of the state folder, and memory.
//
// # States
//
// A [Monitor] is in one of three states:
//
//	well       everything may start
//	read-only  commits fail, a large value cannot be written, or the disk has less
//	           free space or fewer free files than the mark
//	unsound    damage was found in the store; everything may still start, because
//	           stopping here would lose what is under way
//
// While it is read-only nothing new starts: [Monitor.Writable] refuses, the clocks
// of all runs stand still ([Options.Hold]), and steps block in
// [Monitor.WaitWritable]. The results of steps under way are held in memory by the
// store, and large ones in [Monitor.PutBlob]. The state ends by itself, a little
// above the mark so that it does not alternate.
//
// # Ballast
//
// When the engine is well, a file of 8 MiB is in the state folder. It is deleted
// when something is held that cannot be written, so that the last results find
// space on a full disk.
//
// # Memory
//
// The memory of runs ([MemoryUser]) is compared with their limits once a second.
// Guests have a limit of their own in every call, and a process that grows faster
// is the operating system's to end.
//
// # File descriptors
//
// Their shortage is not a state of the engine: each call that finds none waits and
// is repeated, see package openfiles.
package health
