//go:build !linux

package cond

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// limitProcess watches the process's own memory where the system has no limit
// that holds. It is weaker than a limit: between two looks a script may take
// more, up to what it can fill in that time; the parent's kill timer remains.
func limitProcess(memory int64) error {
	debug.SetMemoryLimit(memory * 3 / 4)
	debug.SetMaxStack(int(memory / 2))
	limit := mapped() + uint64(memory)
	go func() {
		for range time.Tick(2 * time.Millisecond) {
			if mapped() > limit {
				fmt.Fprintln(os.Stderr, outOfMemory)
				os.Exit(2)
			}
		}
	}()
	return nil
}
