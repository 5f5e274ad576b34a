package ticket

import (
	"context"
	"time"
)

// Update executes fn in a transaction that is durable when it returns.
type Update func(ctx context.Context, fn func(Tx) error) error

// retryWake is the delay after a transaction of [Service.Run] that failed.
const retryWake = 5 * time.Second

// Run ends leases and delays when they are due, until ctx ends. It reads the next one by
// the index and sleeps until then, or until a change may have made another one the next.
func (s *Service) Run(ctx context.Context, update Update) {
	for ctx.Err() == nil {
		var soon time.Time
		err := update(ctx, func(tx Tx) (err error) {
			soon, err = s.Wake(ctx, tx)
			return err
		})
		var due <-chan time.Time
		switch {
		case err != nil:
			if ctx.Err() == nil {
				s.opt.Logger.Warn("tickets that are due cannot be written; trying again", "error", err, "delay", retryWake)
			}
			due = time.After(retryWake)
		case !soon.IsZero():
			// At least a millisecond: the times of tickets have no smaller unit.
			due = time.After(max(soon.Sub(s.opt.Now()), time.Millisecond))
		}
		select {
		case <-due:
		case <-s.poked:
		case <-ctx.Done():
		}
	}
}

// poke has Run read the next due time again.
func (s *Service) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}
