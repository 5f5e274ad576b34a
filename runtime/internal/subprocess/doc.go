// Package subprocess starts, limits and ends the helper processes of a host: what
// definitions and step plugins of others could end a process with, their text
// and their code before it runs, is read there.
//
// A helper is this program again, told by its environment which kind of helper
// it is. It has nothing else in its environment, its stdin and stdout belong to
// the parent, and it ends when the parent does, since its stdin ends then.
//
// # Concurrency
//
// A [Process] is for one goroutine at a time, except for Kill.
package subprocess
