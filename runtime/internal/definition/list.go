package definition

import (
	"math"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
)

// headListBytes bounds the text of the definitions in a headList.
const headListBytes = 8 << 20

// A headList caches what [Store.List] returned last: lists and metrics ask for it all
// the time, and the store has up to 50 revisions between two heads.
//
// It is valid as long as no definition is being written. A writer registers before its
// batch is enqueued and until its commit is done, so at no moment the store has a
// revision while readers get the one before. Whether the write succeeds does not
// matter: after each the store is read again.
//
// # Concurrency
//
// Safe for concurrent use. The zero value is empty.
type headList struct {
	mu      sync.Mutex
	writing int    // writes that are not done; nothing is cached meanwhile
	writes  uint64 // that have begun
	list    []revision.Stored
	valid   bool
	ids     []string // of the list that was read last, also of one that is too large; nil if it is not known
}

// notCached is the version of a list that must not be cached.
const notCached = math.MaxUint64

// get returns the cached list. Otherwise version is an argument of put.
func (h *headList) get() (list []revision.Stored, ok bool, version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writing > 0 {
		return nil, false, notCached // the store may be read before the write or after it
	}
	return slices.Clone(h.list), h.valid, h.writes
}

// put caches a list that was read from the store, unless a write has begun since get.
func (h *headList) put(list []revision.Stored, version uint64) {
	size := 0
	ids := make([]string, len(list))
	for i, s := range list {
		size += len(s.Definition)
		ids[i] = string(s.ID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writing > 0 || h.writes != version {
		return
	}
	h.ids = ids
	if size <= headListBytes {
		h.list, h.valid = slices.Clone(list), true
	}
}

// known returns the ids of the list, nil if it has to be read.
func (h *headList) known() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ids
}

// begin registers a write.
func (h *headList) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list, h.valid, h.ids = nil, false, nil
	h.writing++
	h.writes++
}

func (h *headList) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writing--
}

// enqueue is Enqueue for a batch that writes definitions.
func (s *Store) enqueue(b store.Batch) *store.Ticket {
	s.heads.begin()
	ticket := s.opt.Store.Enqueue(b)
	ticket.OnDone(func(error) { s.heads.end() })
	return ticket
}
