package host

import (
	"cmp"
	"context"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
)

// openTickets makes the service of tickets as it is configured.
func (h *Host) openTickets() *ticket.Service {
	c := h.settings.Tickets
	profile, ok := retry.ProfileNamed(c.Profile)
	if !ok { // a host without a configuration file
		profile = retry.Fine()
	}
	return ticket.New(ticket.Options{
		Profile: profile, Reviews: cmp.Or(c.Reviews, -1), ReviewDelay: cmp.Or(c.ReviewDelay.Std(), -1), Lease: c.Lease.Std(),
		RepoURL: h.opt.Workspace, AllowUnverified: c.Unverified, Logger: h.opt.Logger, Observer: h.opt.Tickets, Learn: h.learner.Learn,
	})
}

// RunTickets ends claims of tickets that expire, and delays of their retries, until ctx
// ends. Without it they end with the next claim.
func (h *Host) RunTickets(ctx context.Context) {
	h.tickets.Run(ctx, func(ctx context.Context, fn func(ticket.Tx) error) error {
		return h.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error { return fn(tx) })
	})
}
