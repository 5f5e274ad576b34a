//go:build !linux

package subprocess

import "time"

func cpuTime(int) (time.Duration, bool) { return 0, false }
