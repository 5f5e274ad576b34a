//go:build !unix || aix || solaris || illumos

package lock

import "os"

// tryHold takes nothing: here a folder cannot be locked, and of two processes
// that install at one time the later one's lock stands. Files are still replaced
// as a whole, and an entry that was lost shows as a plugin dropped by hand.
func tryHold(*os.File) error { return nil }
