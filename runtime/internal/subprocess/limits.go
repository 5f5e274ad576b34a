package subprocess

import (
	"runtime/metrics"
	"time"
)

// Limits are the resource limits that a helper applies to itself. Where the
// system lacks one of them, the parent's timeout remains.
type Limits struct {
	Memory int64         // bytes above what the program maps at its start
	CPU    time.Duration // processor time; zero means no limit
	File   int64         // size of a file that it writes, in bytes; zero means that it can write none
	// Background gives the helper a low priority and makes it the first process
	// that the system kills when memory runs out.
	Background bool
}

// Mapped returns how much memory the Go runtime has mapped, in bytes.
func Mapped() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}
