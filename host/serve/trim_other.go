//go:build !linux

package serve

import "runtime/debug"

// trim gives back memory of the heap that only the start needed. Which pages of
// the program's file can go is known on Linux only.
func trim() error {
	debug.FreeOSMemory()
	return nil
}
