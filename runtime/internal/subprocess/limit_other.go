//go:build !linux

package subprocess

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// Apply watches the process's own memory where the system has no limit that
// holds. It is weaker than a limit: between two looks a script may take more, up
// to what it can fill in that time. The other bounds are the parent's kill timer.
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
