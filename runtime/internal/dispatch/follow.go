package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Refresh brings the triggers of one definition in step with its newest revision.
// The code that commits a definition calls it after the commit and waits, so that an
// event emitted afterwards finds its trigger. If triggers are disarmed meanwhile,
// nothing is armed, without an error.
func (d *Dispatcher) Refresh(ctx context.Context, id sentinels.ID) error {
	return d.refresh(ctx, id, false)
}

// Pause pauses the triggers of a sentinel durably; a pause that they have is replaced. While they
// are paused nothing fires and nothing that waits starts. Kinds that can do so
// report afterwards what happened meanwhile, schedules as their catch-up says.
func (d *Dispatcher) Pause(ctx context.Context, id sentinels.ID, p trigger.Pause) error {
	return d.setPause(ctx, id, p.Over, encodePut(bucketTriggers, sentinelPrefix(id), sentinelRecord{Paused: true, Until: p.Until.UTC(), By: p.By}))
}

// Resume ends the pause of the triggers of a sentinel, durably. over is as in [trigger.Pause].
func (d *Dispatcher) Resume(ctx context.Context, id sentinels.ID, over func(by string) error) error {
	return d.setPause(ctx, id, over, store.Put{Bucket: bucketTriggers, Key: sentinelPrefix(id), Delete: true})
}

// setPause writes the pause of a sentinel, or removes it, unless over refuses that for the pause that it has.
func (d *Dispatcher) setPause(ctx context.Context, id sentinels.ID, over func(by string) error, put store.Put) error {
	return d.EndPause(id, over, func() error {
		if err := d.opt.Store.Enqueue(store.Batch{Puts: []store.Put{put}}).Wait(ctx); err != nil {
			return err
		}
		return d.refresh(context.WithoutCancel(ctx), id, true)
	})
}

// EndPause calls do, which ends or replaces the pause of the triggers of a sentinel, unless over refuses that for the
// pause that it has. No other pause is written meanwhile. over may be nil.
func (d *Dispatcher) EndPause(id sentinels.ID, over func(by string) error, do func() error) error {
	d.pausing.Lock() // one caller compares and writes at a time
	defer d.pausing.Unlock()
	if over != nil {
		p, paused, err := d.PauseOf(id)
		if err == nil && paused {
			err = over(p.By)
		}
		if err != nil {
			return err
		}
	}
	return do()
}

// PauseOf returns the pause of the triggers of a sentinel. It is the sentinel's: a revision without triggers has it too.
func (d *Dispatcher) PauseOf(id sentinels.ID) (p trigger.Pause, paused bool, err error) {
	raw, found, err := d.opt.Store.Get(bucketTriggers, sentinelPrefix(id))
	if err != nil || !found {
		return p, false, err
	}
	var rec sentinelRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return p, false, fmt.Errorf("read the pause of the triggers of %q: %w", id, err)
	}
	return trigger.Pause{Until: rec.Until, By: rec.By}, rec.Paused && !rec.over(d.opt.Now()), nil
}

// resumeLater ends a pause at its time, unless ctx, which is that of the paused sentinel, ends before.
//
// To end the pause is to arm the sentinel again, with the lock change. So the goroutine is none of
// those that the holder of change waits for, as work and armedSentinel.running are: [Dispatcher.Disarm]
// waits for it before it takes the lock.
func (d *Dispatcher) resumeLater(ctx context.Context, id sentinels.ID, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.ctx.Err() != nil {
		return
	}
	armed := d.ctx
	d.resuming.Go(func() {
		for wait := until.Sub(d.opt.Now().Round(0)); wait > 0; wait = until.Sub(d.opt.Now().Round(0)) {
			if !sleep(ctx, min(wait, maxWatchSleep)) {
				return
			}
		}
		for armed.Err() == nil {
			err := d.opt.Writable()
			if err == nil {
				err = d.refresh(d.base, id, true)
			}
			if err == nil || armed.Err() != nil {
				return
			}
			d.log.Warn("the pause of the triggers has not ended at its time, this is tried again", "sentinel", id, "until", until, "error", err)
			if !sleep(armed, maxWatchSleep) {
				return
			}
		}
	})
}

// refresh is Refresh; again arms also a revision that is armed already, because
// something else has changed.
func (d *Dispatcher) refresh(ctx context.Context, id sentinels.ID, again bool) error {
	d.change.Lock()
	defer d.change.Unlock()
	ctx, done := d.within(ctx)
	defer done()
	newest, found, err := d.opt.Definitions.Newest(id)
	if err != nil {
		return err
	}
	if !found {
		err = d.forget(ctx, id)
	} else if d.armed() {
		err = d.rearm(ctx, newest, again)
	}
	if errors.Is(err, errDisarmed) {
		return nil
	}
	return err
}

// rearm arms one sentinel and runs it. The caller holds change.
func (d *Dispatcher) rearm(ctx context.Context, r Revision, again bool) error {
	s, ticket, err := d.arm(ctx, r, false, again)
	if err == nil && ticket != nil {
		err = d.opt.Settle(ctx, ticket)
	}
	if err == nil && s != nil {
		s.run()
	}
	return err
}

// arm prepares the triggers of a definition. It returns the sentinel if it has to
// be run once the ticket is done, and nil if the revision is armed already, unless
// again is set. The caller holds change.
func (d *Dispatcher) arm(ctx context.Context, r Revision, starting, again bool) (*armedSentinel, *store.Ticket, error) {
	old := d.sentinel(r.ID)
	if old != nil && old.begun && old.revision == r.Number && !again && old.problem == "" {
		return nil, nil, nil
	}
	if old != nil {
		if err := old.end(ctx); err != nil {
			return nil, nil, err
		}
	}
	s, b, refused, err := readArmed(d, r, starting)
	if err != nil {
		return nil, nil, err
	}
	d.mu.Lock()
	d.sentinels[r.ID] = s
	d.mu.Unlock()
	if len(b.Puts) == 0 {
		return s, nil, nil
	}
	ticket := d.opt.Store.Enqueue(b)
	d.report(ticket, refused)
	return s, ticket, nil
}

// report notifies the observer of outcomes once they are durable.
func (d *Dispatcher) report(ticket *store.Ticket, list []trigger.Fired) {
	ticket.OnDone(func(err error) {
		for _, f := range list {
			if err == nil {
				d.opt.Observe(f)
			}
		}
	})
}

// forget disarms a deleted sentinel and deletes what is kept of its triggers. The
// caller holds change.
func (d *Dispatcher) forget(ctx context.Context, id sentinels.ID) error {
	d.mu.Lock()
	s := d.sentinels[id]
	delete(d.sentinels, id)
	d.mu.Unlock()
	if s != nil {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	puts, err := d.forgetSentinel(id)
	if err != nil || len(puts) == 0 {
		return err
	}
	return d.opt.Settle(ctx, d.opt.Store.Enqueue(store.Batch{Puts: puts}))
}

// forgetDeleted deletes what a crash left of triggers whose definition was
// deleted.
func (d *Dispatcher) forgetDeleted(ctx context.Context, stored []Revision) error {
	exists := map[sentinels.ID]bool{}
	for _, r := range stored {
		exists[r.ID] = true
	}
	var gone []sentinels.ID
	err := d.opt.Store.Scan(bucketTriggers, nil, nil, false, func(key, _ []byte) bool {
		id := sentinels.ID(key[:max(0, slices.Index(key, 0))])
		if !exists[id] && !slices.Contains(gone, id) {
			gone = append(gone, id)
		}
		return true
	})
	for _, id := range gone {
		// A definition that cannot be read is not listed, but it is not deleted.
		if _, found, bad := d.opt.Definitions.Newest(id); err == nil && bad == nil && !found {
			err = d.forget(ctx, id)
		}
	}
	return err
}
