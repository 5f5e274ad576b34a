package runindex

import (
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// held counts the unfinished runs of each agent and of models, so that the start of one does not look at the
// summaries of all. It is built at the first request, from the runs that have not ended, and each change is
// counted from then on, as in [totals].
//
// # Concurrency
//
// Safe for concurrent use. Changes never wait for the store.
type held struct {
	building sync.Mutex // held while building

	mu    sync.Mutex
	built bool
	runs  map[runKeyDigest]heldRun // nil until they are built
	of    map[string]Held
	ended map[runKeyDigest]struct{} // while building: runs that the store may still call unfinished
}

type heldRun struct {
	by    string
	bytes int64
}

// Held is what the unfinished runs of one agent, or of models, are together.
type Held struct {
	Runs       int
	StartBytes int64
}

// began counts a run. It may be called again.
func (h *held) began(info run.Info) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs != nil && info.By != "" {
		h.add(info)
	}
}

// over takes a run out, of anyone. It may be called again.
func (h *held) over(id sentinels.RunID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil {
		return
	}
	key := keyOfRun(id)
	if h.ended != nil {
		h.ended[key] = struct{}{}
	}
	h.drop(key)
}

// add makes the entry of a run. The caller holds mu.
func (h *held) add(info run.Info) {
	key := keyOfRun(info.ID)
	h.drop(key)
	h.runs[key] = heldRun{info.By, info.StartBytes}
	sum := h.of[info.By]
	h.of[info.By] = Held{sum.Runs + 1, sum.StartBytes + info.StartBytes}
}

// drop takes an entry out, if it is there. The caller holds mu.
func (h *held) drop(key runKeyDigest) {
	r, ok := h.runs[key]
	if !ok {
		return
	}
	delete(h.runs, key)
	if sum := h.of[r.by]; sum.Runs > 1 {
		h.of[r.by] = Held{sum.Runs - 1, sum.StartBytes - r.bytes}
	} else {
		delete(h.of, r.by)
	}
}

// HeldBy returns what the unfinished runs are that count for by, see [run.Info]. The first call of a process looks
// at all unfinished runs, later ones at none. A summary that cannot be read counts for none.
func (x *Index) HeldBy(by string) Held {
	h := &x.held
	h.building.Lock()
	defer h.building.Unlock()
	h.mu.Lock()
	built := h.built
	if !built {
		h.runs, h.of, h.ended = map[runKeyDigest]heldRun{}, map[string]Held{}, map[runKeyDigest]struct{}{}
	}
	h.mu.Unlock()
	var list []run.Info
	if !built {
		list, _ = x.List(run.Filter{Statuses: run.Unfinished()})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, info := range list {
		if _, over := h.ended[keyOfRun(info.ID)]; !over && info.By != "" {
			h.add(info)
		}
	}
	h.built, h.ended = true, nil
	return h.of[by]
}
