package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

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
		// A stop of the run does not end this: its end finds no room either, and
		// the caller of the stop gets the error that it is held.
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
		// The run may have been paused while it waited for room, so both gates are
		// tried again, until both were found open one behind the other.
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
