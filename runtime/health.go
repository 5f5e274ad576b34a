package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Health says whether the runtime can keep what happens.
type Health struct {
	OK       bool      `json:"ok"`
	ReadOnly bool      `json:"readOnly"`         // nothing new starts, see [Runtime.Health]
	Reason   string    `json:"reason,omitempty"` // for people; empty when OK
	Hint     string    `json:"hint,omitempty"`   // what to do about it
	Since    time.Time `json:"since"`            // when OK or ReadOnly last changed

	FreeBytes  int64 `json:"freeBytes"`  // on the disk of the state folder; -1 if it is not known
	LowBytes   int64 `json:"lowBytes"`   // below which the runtime is read-only; 0 if it does not look
	StoreBytes int64 `json:"storeBytes"` // of the database file
	StoreFree  int64 `json:"storeFree"`  // of them unused; the file shrinks when it is opened
	Held       int   `json:"held"`       // batches that wait to be written

	Commits uint64 `json:"commits"` // transactions made durable since the runtime was opened

	Snapshot time.Time `json:"snapshot,omitzero"` // when the newest one was taken
}

// healthState is what the runtime knows of its store and disk.
//
// # Concurrency
//
// Safe for concurrent use. The goroutine of [Runtime.watchHealth] changes it,
// besides a write that meets a full disk.
type healthState struct {
	room *gate // shut while read-only: the steps of all runs wait here

	looking sync.Mutex // held by a check, so that changes are reported in their order

	mu       sync.Mutex
	now      Health
	stalled  chan struct{} // closed while commits fail
	isClosed bool          // whether stalled is
	blob     error         // why a blob that is held cannot be written
	blobs    int           // how many are held
	settled  bool          // the process has lived long enough to be worth a ballast
	unsound  *abi.Error    // the store was found damaged while it was open
	snapshot time.Time
}

// newHealthState begins well: the first look comes before anybody is served.
func newHealthState() *healthState {
	return &healthState{room: newGate(), now: Health{OK: true, Since: time.Now(), FreeBytes: -1}, stalled: make(chan struct{})}
}

const (
	healthInterval = time.Second            // between two looks at store and disk
	healthHurry    = 200 * time.Millisecond // while read-only
	healthSettle   = 5 * time.Second        // until there is a ballast: writing it takes longer than many a process lives
	fewFiles       = 64                     // names that can still be made, below which a disk counts as full
)

// Health reports how the store and its disk are now.
//
// A runtime is read-only while commits fail or the disk has less room than
// [Options.MinFree]. Then nothing new starts: no run, no step, no edit, no
// event from outside; each of these is the error unavailable at once. What
// steps under way come to is held and written as soon as there is room, for
// which the ballast in the state folder is deleted. Reads continue. It ends by
// itself.
func (rt *Runtime) Health() Health {
	h := rt.health
	h.mu.Lock()
	now := h.now
	now.Snapshot = h.snapshot
	h.mu.Unlock()
	// Asked for now and not at the last look, because they cost next to nothing
	// and who asks wants to see them move.
	s := rt.db.Stats()
	now.StoreBytes, now.StoreFree, now.Held, now.Commits = s.FileBytes, s.FreeBytes, s.Queued, s.Commits
	return now
}

// storeHealth returns why commits fail, nil if they do not.
func (rt *Runtime) storeHealth() error {
	if s, ok := rt.db.(interface{ Health() error }); ok {
		return s.Health()
	}
	return nil
}

// writable refuses what would begin something new while the runtime is
// read-only. A store that has just stalled counts at once.
func (rt *Runtime) writable() error {
	h := rt.health
	h.mu.Lock()
	now := h.now
	h.mu.Unlock()
	if !now.ReadOnly {
		err := rt.storeHealth()
		if err == nil {
			return nil
		}
		now.Reason, now.Hint = reasonOf(err), hintOf(err)
	}
	return readOnlyError(now.Reason, now.Hint)
}

// The ways out of what makes a runtime read-only.
const (
	hintRoom  = statefolder.HintSpace
	hintWrite = "make the state folder writable again (mount, chmod, chown); the runtime continues by itself"
)

// hintOf returns the way out of what makes commits fail.
func hintOf(err error) string {
	if store.IsReadOnly(err) {
		return hintWrite
	}
	return hintRoom
}

// IsDiskFull reports whether err says that there is no space to write: the disk
// or a quota is full, or a file may not grow.
func IsDiskFull(err error) bool { return store.IsFull(err) }

// readOnlyError refuses. A client may try again after some seconds: that
// is how long it takes to delete a file.
func readOnlyError(reason, hint string) *abi.Error {
	return &abi.Error{Code: abi.Unavailable, RetryAfterMs: 5000, Message: "the engine is read-only: " + reason, Hint: hint}
}

// reasonOf says in words why commits fail.
func reasonOf(err error) string {
	var stalled *store.StalledError
	if errors.As(err, &stalled) {
		// How many batches are held and since when stands in Health by itself.
		err = stalled.Err
	}
	return fmt.Sprintf("the store cannot be written: %v", err)
}

// await waits for a commit on behalf of a caller outside of any run. If the
// store stalls it does not keep them waiting: what they asked for is held and
// will be written, and that is what the error says.
func (rt *Runtime) await(ctx context.Context, t ticket) error {
	// First alone: where both are ready the commit counts, and a select would
	// choose one at random.
	select {
	case <-t.Done():
		return t.Err()
	default:
	}
	select {
	case <-t.Done():
		return t.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-rt.health.stall():
		return heldError("what was asked for")
	}
}

// heldError says that something has happened and cannot be kept for good yet.
func heldError(what string) *abi.Error {
	e := readOnlyError(what+" is held in memory and not durable yet", "it is written as soon as there is room, do not repeat it: "+hintRoom)
	e.Permanent = true // the same once more is not what is wanted
	e.RetryAfterMs = 0
	return e
}

// settled waits until a commit is done, or the store stalls: then the batch is
// held, and is committed before any that comes later. It is for what no caller was
// promised and what must not keep a start waiting for a disk.
func (rt *Runtime) settled(ctx context.Context, t ticket) error {
	select {
	case <-t.Done():
		return t.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-rt.health.stall():
		return nil
	}
}

// stall is closed while commits fail.
func (h *healthState) stall() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stalled
}
