//go:build !linux

package serve

import "runtime/debug"

// trim returns free memory of the heap to the system. Only on Linux are unused
// pages of the executable known.
func trim() error {
	debug.FreeOSMemory()
	return nil
}
