//go:build !linux

package wasm

import "time"

// threadTime is not available on this system.
func threadTime() (used time.Duration, ok bool) { return 0, false }
