package health

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// A MemoryUser is a run whose memory is watched.
type MemoryUser interface {
	// MemoryUse returns how many bytes the run's variables and processes take, 0 if
	// it has no processes, and how many they may take.
	MemoryUse() (used, limit int64)
	// ExceedMemory ends the run; text says how much memory it takes, and its limit.
	ExceedMemory(text string)
}

// watchMemory ends runs whose variables and processes take more than their limit.
func (m *Monitor) watchMemory(ctx context.Context) {
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, r := range m.opt.Runs() {
			if used, limit := r.MemoryUse(); used > limit {
				r.ExceedMemory(fmt.Sprintf(run.ReasonMemory+" reached: variables and processes take %d MiB, the limit is %d MiB", used>>20, limit>>20))
			}
		}
	}
}
