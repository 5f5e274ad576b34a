package runtime

import (
	"math"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// headsCacheBytes bounds the text of the definitions that are kept for lists.
const headsCacheBytes = 8 << 20

// heads keep what [Runtime.Definitions] returned last: lists and metrics ask for
// it all the time, and the store has up to 50 revisions between two heads.
//
// It holds as long as no definition is being written. A writer says so before its
// batch is on its way, and says when that is over, so there is no moment at which
// the store has a revision and readers are given the one before. Whether a write
// has changed does not matter here: after each the store is read again.
//
// # Concurrency
//
// Safe for concurrent use. The zero value is empty.
type heads struct {
	mu      sync.Mutex
	writing int    // writes under way; nothing is kept meanwhile
	writes  uint64 // that have begun
	list    []Stored
	have    bool
}

// get returns what is kept. Where that is nothing, ticket is what put wants.
func (h *heads) get() (list []Stored, ok bool, ticket uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writing > 0 {
		return nil, false, unkept // the store may be read before and after it
	}
	return slices.Clone(h.list), h.have, h.writes
}

// unkept is the ticket of a reading that is not to be kept.
const unkept = math.MaxUint64

// put keeps what the store had, unless a write has begun since get.
func (h *heads) put(list []Stored, ticket uint64) {
	size := 0
	for _, s := range list {
		size += len(s.Definition)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if size <= headsCacheBytes && h.writing == 0 && h.writes == ticket {
		h.list, h.have = slices.Clone(list), true
	}
}

// enqueueDefinitions is Enqueue for a batch that writes definitions.
func (rt *Runtime) enqueueDefinitions(b store.Batch) *store.Ticket {
	h := &rt.heads
	h.mu.Lock()
	h.list, h.have = nil, false
	h.writing++
	h.writes++
	h.mu.Unlock()
	ticket := rt.db.Enqueue(b)
	ticket.OnDone(func(error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.writing--
	})
	return ticket
}
