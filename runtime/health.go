package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
// besides whoever meets a full disk.
type healthState struct {
	room *gate // shut while read-only: the steps of all runs wait here

	looking sync.Mutex // held by a look, so that changes are told in their order

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
// which the ballast in the state folder is let go. Reads go on. It ends by
// itself.
func (rt *Runtime) Health() Health {
	h := rt.health
	h.mu.Lock()
	now := h.now
	now.Snapshot = h.snapshot
	h.mu.Unlock()
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
		now.Reason, now.Hint = reasonOf(err), hintRoom
	}
	return readOnlyError(now.Reason, now.Hint)
}

const hintRoom = "make room on the disk of the state folder; everything goes on by itself"

func readOnlyError(reason, hint string) *abi.Error {
	return &abi.Error{Code: abi.Unavailable, RetryAfterMs: 5000, Message: "the engine is read-only: " + reason, Hint: hint}
}

// reasonOf says in words why commits fail.
func reasonOf(err error) string {
	var stalled *store.StalledError
	if errors.As(err, &stalled) {
		err = stalled.Err
	}
	return fmt.Sprintf("the store cannot be written: %v", err)
}

// await waits for a commit on behalf of somebody outside of any run. If the
// store stalls it does not keep them waiting: what they asked for is held and
// will be written, and that is what the error says.
func (rt *Runtime) await(ctx context.Context, t ticket) error {
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

// stall is closed while commits fail.
func (h *healthState) stall() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stalled
}

// look takes a fresh view of store and disk.
func (rt *Runtime) look() {
	h := rt.health
	h.looking.Lock()
	defer h.looking.Unlock()
	disk := store.Disk{Free: -1, Total: -1, FreeFiles: -1}
	low := int64(0)
	if rt.opt.Dir != "" && rt.opt.MinFree >= 0 {
		if d, err := store.DiskOf(rt.opt.Dir); err == nil {
			disk, low = d, rt.lowWater(d)
		}
	}
	failing := rt.storeHealth()

	h.mu.Lock()
	was := h.now
	next := Health{OK: true, Since: was.Since, FreeBytes: disk.Free, LowBytes: low}
	enough := low
	if was.ReadOnly {
		enough += low / 4 // else it would flicker at the mark
	}
	switch {
	case failing != nil:
		next.ReadOnly, next.Reason, next.Hint = true, reasonOf(failing), hintRoom
	case h.blob != nil:
		next.ReadOnly, next.Reason, next.Hint = true, fmt.Sprintf("a large value cannot be written: %v", h.blob), hintRoom
	case low > 0 && disk.Free < enough:
		next.ReadOnly, next.Hint = true, hintRoom
		next.Reason = fmt.Sprintf("the disk of %s is nearly full: %s free, %s are kept for what is under way", rt.opt.Dir, byteText(disk.Free), byteText(enough))
	case disk.FreeFiles >= 0 && disk.FreeFiles < fewFiles:
		next.ReadOnly, next.Hint = true, "delete files on the disk of the state folder; everything goes on by itself"
		next.Reason = fmt.Sprintf("the disk of %s has room for %d more files only", rt.opt.Dir, disk.FreeFiles)
	case h.unsound != nil:
		next.Reason, next.Hint = h.unsound.Message, h.unsound.Hint
	}
	next.OK = next.Reason == ""
	changed := next.OK != was.OK || next.ReadOnly != was.ReadOnly
	if changed {
		next.Since = time.Now()
	}
	if failing != nil && !h.isClosed {
		close(h.stalled)
		h.isClosed = true
	} else if failing == nil && h.isClosed {
		h.stalled, h.isClosed = make(chan struct{}), false
	}
	h.now = next
	h.mu.Unlock()

	rt.shift(next, disk, failing)
	if changed {
		rt.tellHealth(next)
	}
}

// shift opens or shuts the gate that all steps pass, and sees to the ballast.
func (rt *Runtime) shift(now Health, disk store.Disk, failing error) {
	h := rt.health
	rt.holdClocks(now.ReadOnly)
	if now.ReadOnly {
		h.room.shut()
	} else {
		h.room.open()
	}
	if rt.opt.Dir == "" || disk.Total <= 0 {
		return
	}
	size := ballastSize(disk.Total)
	h.mu.Lock()
	starved, settled := failing != nil || h.blob != nil, h.settled
	h.mu.Unlock()
	switch {
	case starved && disk.Free < size:
		if dropped, err := store.DropBallast(rt.opt.Dir); err != nil || dropped {
			rt.log.Warn("ballast is let go to write what is held", "dropped", dropped, "error", err)
		}
	case now.OK && settled && disk.Free > now.LowBytes+2*size:
		if err := store.MakeBallast(rt.opt.Dir, size); err != nil {
			rt.log.Warn("no ballast", "error", err)
		}
	}
}

// ballastSize is what is kept for the last results: 8 MiB, less on a small disk.
func ballastSize(total int64) int64 { return min(8<<20, total/64) }

// lowWater is the room below which nothing new starts.
func (rt *Runtime) lowWater(d store.Disk) int64 {
	if rt.opt.MinFree > 0 {
		return rt.opt.MinFree
	}
	return min(64<<20, d.Total/100)
}

func (rt *Runtime) tellHealth(now Health) {
	if now.OK {
		rt.log.Info("the engine can write again")
	} else {
		rt.log.Error("the engine is not well", "readOnly", now.ReadOnly, "reason", now.Reason, "hint", now.Hint)
	}
	if rt.opt.Observer.Health != nil {
		rt.opt.Observer.Health(now)
	}
}

// watchHealth looks at store and disk until the runtime ends.
func (rt *Runtime) watchHealth() {
	defer rt.wg.Done()
	begin := time.Now()
	timer := time.NewTimer(healthInterval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-rt.ctx.Done():
			return
		}
		rt.health.mu.Lock()
		rt.health.settled = time.Since(begin) >= healthSettle
		rt.health.mu.Unlock()
		rt.look()
		rt.health.mu.Lock()
		hurry := rt.health.now.ReadOnly
		rt.health.mu.Unlock()
		next := healthInterval
		if hurry {
			next = healthHurry
		}
		timer.Reset(next)
	}
}

// putBlob keeps a large value. On a full disk it waits for room, as commits do:
// what a step came to must not become an error because nothing could be
// written. It gives up when the runtime ends.
func (rt *Runtime) putBlob(data []byte) (string, error) {
	h := rt.health
	held := false
	defer func() {
		if held {
			h.holdBlob(-1, nil)
			rt.look()
		}
	}()
	for {
		digest, err := rt.db.PutBlob(data)
		if err == nil || !store.IsFull(err) {
			return digest, err
		}
		if !held {
			held = true
			h.holdBlob(1, err)
			rt.look() // which lets the ballast go
		}
		timer := time.NewTimer(healthHurry)
		select {
		case <-timer.C:
		case <-rt.ctx.Done():
			timer.Stop()
			return "", errors.Join(errShutdown, err)
		}
	}
}

// holdBlob counts those that wait with a blob.
func (h *healthState) holdBlob(n int, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blobs += n; h.blobs == 0 {
		h.blob = nil
	} else if why != nil {
		h.blob = why
	}
}

// pass holds a step back while its run is paused or the runtime is read-only.
func (r *run) pass(ctx context.Context) error {
	for {
		if err := r.gate.pass(ctx); err != nil {
			return err
		}
		room := r.rt.health.room
		if room.isOpen() {
			return nil
		}
		if err := room.pass(ctx); err != nil {
			return err
		}
	}
}

// holdClocks stops the clocks of all runs while the runtime is read-only: what
// they wait for may be held too, and their limits are not for waiting on a disk.
func (rt *Runtime) holdClocks(hold bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.readOnly == hold {
		return
	}
	rt.readOnly = hold
	for _, r := range rt.runs {
		if hold {
			r.clock.hold()
		} else {
			r.clock.release()
		}
	}
}

// byteText writes a size for people.
func byteText(n int64) string {
	switch {
	case n < 0:
		return "unknown"
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
