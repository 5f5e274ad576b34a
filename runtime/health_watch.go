package runtime

import (
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// look takes a fresh view of store and disk.
func (rt *Runtime) look() {
	h := rt.health
	h.looking.Lock()
	defer h.looking.Unlock()
	disk := store.Disk{Free: -1, Total: -1, FreeFiles: -1}
	low := int64(0)
	if rt.opt.Dir != "" && rt.opt.MinFree >= 0 {
		if d, err := store.DiskOf(rt.opt.Dir); err == nil {
			disk, low = d, statefolder.LowWater(d, rt.opt.MinFree)
		}
	}
	// Not under mu: what asks the disk may hang for as long as the disk does, and
	// everybody who wants to begin something looks at mu.
	failing := rt.storeHealth()

	h.mu.Lock()
	if bad := rt.damagedValue(); bad != nil && h.unsound == nil {
		h.unsound = bad
	}
	was := h.now
	next := Health{OK: true, Since: was.Since, FreeBytes: disk.Free, LowBytes: low}
	enough := low
	if was.ReadOnly {
		enough += low / 4 // else it would flicker at the mark
	}
	// The first that holds is reported: a store that fails is why people look here,
	// room on the disk only explains it.
	switch {
	case failing != nil:
		next.ReadOnly, next.Reason, next.Hint = true, reasonOf(failing), hintOf(failing)
	case h.blob != nil:
		next.ReadOnly, next.Reason, next.Hint = true, fmt.Sprintf("a large value cannot be written: %v", h.blob), hintRoom
	case low > 0 && disk.Free < enough:
		next.ReadOnly, next.Hint = true, hintRoom
		next.Reason = fmt.Sprintf("the disk of %s is nearly full: %s free, %s are kept for what is under way", rt.opt.Dir, statefolder.FormatBytes(disk.Free), statefolder.FormatBytes(enough))
	case disk.FreeFiles >= 0 && disk.FreeFiles < fewFiles:
		next.ReadOnly, next.Hint = true, "delete files on the disk of the state folder; the runtime continues by itself"
		next.Reason = fmt.Sprintf("the disk of %s has room for %d more files only", rt.opt.Dir, disk.FreeFiles)
	case h.unsound != nil:
		next.Reason, next.Hint = h.unsound.Message, h.unsound.Hint
	}
	next.OK = next.Reason == ""
	changed := next.OK != was.OK || next.ReadOnly != was.ReadOnly
	if changed {
		next.Since = time.Now()
	}
	// Callers that wait for a commit are released, once each time that the store fails.
	if failing != nil && !h.isClosed {
		close(h.stalled)
		h.isClosed = true
	} else if failing == nil && h.isClosed {
		h.stalled, h.isClosed = make(chan struct{}), false
	}
	h.now = next
	h.mu.Unlock()

	rt.shift(next, disk, failing)
	if next.OK && rt.plugins != nil {
		rt.plugins.KeepRest()
	}
	if changed {
		rt.tellHealth(next)
	}
}

// damagedValue returns the first damaged value that this process has read.
func (rt *Runtime) damagedValue() *abi.Error {
	if rt.file == nil {
		return nil
	}
	if bad := rt.file.Damaged(); bad != nil {
		return abi.As(bad)
	}
	return nil
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
	// The ballast goes only when something is held that cannot be written: the
	// mark alone means that there is room left for what is under way.
	size := ballastSize(disk.Total)
	h.mu.Lock()
	starved, settled := failing != nil || h.blob != nil, h.settled
	h.mu.Unlock()
	switch {
	case starved && disk.Free < size:
		if dropped, err := store.DropBallast(rt.opt.Dir); err != nil || dropped {
			rt.log.Warn("ballast is deleted to write what is held", "dropped", dropped, "error", err)
		}
	case now.OK && settled && disk.Free > now.LowBytes+2*size:
		if err := store.MakeBallast(rt.opt.Dir, size); err != nil {
			rt.log.Warn("no ballast", "error", err)
		}
	}
}

// ballastSize is what is kept for the last results: 8 MiB, less on a small disk.
func ballastSize(total int64) int64 { return min(8<<20, total/64) }

// tellHealth says that something has changed, to the log and to the observer.
// The caller holds looking, so changes are reported in their order.
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
		// While read-only everybody waits for the next look.
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
