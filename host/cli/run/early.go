package run

import (
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// early holds back what a run tells before it is known to have started: logs
// and text are told at once, its start only when that is durable. A run whose
// start was seen has an entry that is nil.
type early map[sentinels.RunID][]runtime.Progress

// order returns what can be shown now that p came in.
func (e early) order(p runtime.Progress) []runtime.Progress {
	held, known := e[p.Run]
	if known && held == nil {
		return []runtime.Progress{p}
	}
	if p.Event == runtime.OnLog || p.Event == runtime.OnText {
		e[p.Run] = append(held, p)
		return nil
	}
	e[p.Run] = nil
	return append([]runtime.Progress{p}, held...)
}
