package subprocess

import (
	"runtime/metrics"
	"time"
)

// Limits bound a helper from the inside. Where the system has no such limit the
// parent's own, its kill timer, is what remains.
type Limits struct {
	Memory int64         // bytes above what the program maps at its start
	CPU    time.Duration // of processor; zero does not bound it
	File   int64         // bytes of any file it writes; zero lets it write none
	// Background lets all other work go first, and the system take this process
	// before others when it is out of memory.
	Background bool
}

// Mapped is the memory that the Go runtime holds, in bytes.
func Mapped() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}
