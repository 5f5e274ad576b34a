package run

import (
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// early delays the progress of a run until its start has been reported: logs and text
// are reported at once, the start only when it is durable. A run whose start was seen
// has a nil entry.
type early map[sentinels.RunID][]runtime.Progress

// order returns the progress that can be shown after p.
func (e early) order(p runtime.Progress) []runtime.Progress {
	held, known := e[p.Run]
	if known && held == nil {
		return []runtime.Progress{p}
	}
	if p.Event == runtime.OnLog || p.Event.Partial() {
		e[p.Run] = append(held, p)
		return nil
	}
	e[p.Run] = nil
	return append([]runtime.Progress{p}, held...)
}
