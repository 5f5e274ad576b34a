//go:build unix && !linux

package checkpoint

import "golang.org/x/sys/unix"

// openPath opens the folder at a path. Commands are confined on Linux alone, so none replaces those above it.
func openPath(name string) (int, error) {
	return retried(func() (int, error) { return unix.Open(name, openFlags, 0) })
}
