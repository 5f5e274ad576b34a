package runtime

import (
	"fmt"
	"time"
)

// memoryInterval is how often the processes of runs are looked at. A process
// that grows faster than that is the operating system's to stop.
const memoryInterval = time.Second

// watchMemory ends runs whose variables and processes take more than their
// limit. Guests have a limit of their own, in every call.
func (rt *Runtime) watchMemory() {
	defer rt.wg.Done()
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-rt.ctx.Done():
			return
		}
		rt.mu.Lock()
		runs := make([]*run, 0, len(rt.runs))
		for _, r := range rt.runs {
			runs = append(runs, r)
		}
		rt.mu.Unlock()
		for _, r := range runs {
			used := rt.opt.Executions.Memory(r.id)
			if used == 0 {
				continue
			}
			used += r.runScope().size()
			if limit := r.memoryLimit(); used > limit {
				r.cancel(&limitError{"maxMemoryMb", fmt.Sprintf("maxMemoryMb reached: variables and processes take %d MiB, the limit is %d MiB", used>>20, limit>>20)})
			}
		}
	}
}
