package ticket_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestClockJumps: ten workers whose clock jumps by hours in both directions. Leases end
// early or late, but each ticket ends once and no claim is held twice.
func TestClockJumps(t *testing.T) {
	var mu sync.Mutex
	offset := time.Duration(0)
	d := open(t, func(o *ticket.Options) {
		o.AllowUnverified = true
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(offset)
		}
	})
	const tickets = 200
	for n := range tickets {
		d.create(fmt.Sprintf("t-%d", n), ticket.Fields{})
	}
	stop := make(chan struct{})
	var jumping, workers sync.WaitGroup
	jumping.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				mu.Lock()
				offset += time.Duration(rand.IntN(7200)-3600) * time.Second
				mu.Unlock()
			}
		}
	})
	var log sync.Map // tickets and tokens of claims, and ends
	left := make(chan struct{}, tickets)
	for worker := range 10 {
		workers.Go(func() {
			for len(left) < tickets {
				var v *ticket.View
				if err := d.do(func(ctx context.Context, tx ticket.Tx) (err error) {
					v, err = d.s.Claim(ctx, tx, ticket.Claim{Agent: fmt.Sprint(worker)})
					return err
				}); err != nil {
					t.Error(err)
					return
				}
				if v == nil { // delays that a jump back made long: a person releases them
					d.must(func(ctx context.Context, tx ticket.Tx) error {
						list, err := d.s.List(ctx, tx, ticket.Filter{States: []ticket.State{ticket.OnHold, ticket.Ready}, Limit: 200})
						for _, held := range list.Tickets {
							if held.State == ticket.OnHold {
								_, err = d.s.Decide(ctx, tx, held.ID, ticket.Decision{Action: "release", By: "user"})
							} else if held.RetryAfter != nil {
								_, err = d.s.Decide(ctx, tx, held.ID, ticket.Decision{Action: "hold", By: "user"})
							}
							if err != nil {
								return err
							}
						}
						return err
					})
					continue
				}
				if other, taken := log.LoadOrStore(fmt.Sprintf("claim %s %d", v.ID, v.Lease.Token), worker); taken {
					t.Errorf("claim %d of %s was given to %v and %d", v.Lease.Token, v.ID, other, worker)
				}
				time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
				err := d.do(func(ctx context.Context, tx ticket.Tx) error {
					_, err := d.s.Complete(ctx, tx, v.ID, fmt.Sprint(worker), ticket.Result{Token: v.Lease.Token})
					return err
				})
				switch {
				case err == nil:
					if other, ended := log.LoadOrStore("end "+v.ID, worker); ended {
						t.Errorf("%s ended with %v and %d", v.ID, other, worker)
					}
					left <- struct{}{}
				case abi.CodeOf(err) != abi.Conflict:
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	jumping.Wait()
	want(t, "done", tickets, len(d.list(ticket.Filter{States: []ticket.State{ticket.Done}, Limit: 200})))
}
