//go:build !linux

package subprocess

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// Apply checks the memory of this process every 2 ms, on systems without a
// limit that works. It is weaker than a limit: between two checks a script may
// take as much as it can fill in that time. The other bounds are left to the
// parent, which kills the helper after a timeout.
func (l Limits) Apply() error {
	debug.SetMemoryLimit(l.Memory * 3 / 4)
	debug.SetMaxStack(int(l.Memory / 2))
	limit := Mapped() + uint64(l.Memory)
	go func() {
		for range time.Tick(2 * time.Millisecond) {
			if Mapped() > limit {
				fmt.Fprintln(os.Stderr, outOfMemory)
				os.Exit(2)
			}
		}
	}()
	return nil
}
