package health

import (
	"context"
	"errors"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// Stalled returns a channel that is closed while commits fail.
func (m *Monitor) Stalled() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stalled
}

// Await waits for a commit on behalf of a caller outside of any run. If commits
// fail the caller does not wait: the batch is held and will be written, and the
// error is that of [Monitor.HeldError].
func (m *Monitor) Await(ctx context.Context, t *store.Ticket) error {
	// First alone: if both are ready the commit counts, and a select would choose
	// one at random.
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
	case <-m.Stalled():
		return m.HeldError("what was asked for")
	}
}

// AwaitOrStalled waits until a commit is done or commits fail. Then the batch is
// held, and is committed before any later one. It is for batches that no caller
// depends on and that must not delay a start until the disk is free.
func (m *Monitor) AwaitOrStalled(ctx context.Context, t *store.Ticket) error {
	select {
	case <-t.Done():
		return t.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.Stalled():
		return nil
	}
}

// PutBlob stores a large value. On a full disk it waits for space, as commits do:
// the result of a step must not become an error because it could not be written. It
// returns when ctx ends, with the cause of ctx and the error of the store.
func (m *Monitor) PutBlob(ctx context.Context, data []byte) (string, error) {
	held := false
	defer func() {
		if held {
			m.holdBlob(-1, nil)
			m.Look()
		}
	}()
	for {
		digest, err := m.opt.Store.PutBlob(data)
		if err == nil || !store.IsFull(err) {
			return digest, err
		}
		if !held {
			held = true
			m.holdBlob(1, err)
			m.Look() // deletes the ballast
		}
		timer := time.NewTimer(intervalHeld)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", errors.Join(context.Cause(ctx), err)
		}
	}
}

// holdBlob counts the blobs that are held.
func (m *Monitor) holdBlob(n int, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs += n; m.blobs == 0 {
		m.blob = nil
	} else if why != nil {
		m.blob = why
	}
}
