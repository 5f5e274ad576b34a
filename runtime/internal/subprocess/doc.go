// Package subprocess starts, limits and stops the helper processes of a host.
//
// A helper reads input that could crash a process: foreign definitions, and
// step plugins before they are executed. It is the same program, started again
// with an environment variable ([Marker]) that selects the kind of helper. Its
// environment holds nothing else. Its stdin and stdout belong to the parent.
// When the parent ends, the helper's stdin ends, and so does the helper.
// [Process.Watch] kills a helper that exceeds a limit on its time.
//
// # Concurrency
//
// A [Process] must be used by one goroutine at a time. [Process.Kill] and
// [Process.CPUTimeNow] may be called from any goroutine.
package subprocess
