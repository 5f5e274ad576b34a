package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

var ticketClauses = []clause{
	{name: "S5.1 Done, Err and Wait agree", check: func(t *testing.T, s store.Store) {
		good, bad := s.Enqueue(store.Batch{}), s.Enqueue(store.Batch{Appends: appends(run1, 3, 3)})
		<-good.Done()
		<-bad.Done()
		if good.Err() != nil || !errors.Is(bad.Err(), store.ErrSequence) {
			t.Errorf("errors %v and %v", good.Err(), bad.Err())
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if err := good.Wait(gone); err != nil {
			t.Errorf("a batch that is done reports %v", err)
		}
		wantIs(t, bad.Wait(gone), store.ErrSequence)
	}},
	{name: "S5.2 Wait ends with its context, the batch is still committed", check: func(t *testing.T, s store.Store) {
		release := blockWriter(t, s)
		ticket := s.Enqueue(store.Batch{Appends: appends(run1, 1, 1)})
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errNo)
		wantIs(t, ticket.Wait(ctx), errNo)
		if err := ticket.Err(); err != nil {
			t.Errorf("error before it is done: %v", err)
		}
		release()
		if err := ticket.Wait(context.Background()); err != nil {
			t.Error(err)
		}
		wantLast(t, s, run1, 1)
	}},
	{name: "S5.3 callbacks run in the order of their batches", check: func(t *testing.T, s store.Store) {
		release := blockWriter(t, s)
		var got []int // appended by one goroutine at a time, see below
		end := make(chan struct{})
		var tickets []*store.Ticket
		for i := range 60 {
			b := store.Batch{Lazy: i%2 == 0}
			if i == 3 {
				b.Appends = appends("no run", 1, 1) // refused as malformed
			}
			tickets = append(tickets, s.Enqueue(b))
		}
		for i := range tickets {
			i = len(tickets) - 1 - i // the order of registration does not matter
			tickets[i].OnDone(func(err error) {
				if (i == 3) != (err != nil) {
					t.Errorf("batch %d: %v", i, err)
				}
				got = append(got, i)
				if i == len(tickets)-1 {
					close(end)
				}
			})
		}
		release()
		<-end
		if len(got) != len(tickets) || !slices.IsSorted(got) {
			t.Errorf("order %v", got)
		}
	}},
	{name: "S5.4 a slow callback blocks neither writer nor waiters", check: func(t *testing.T, s store.Store) {
		in, out := make(chan struct{}), make(chan struct{})
		s.Enqueue(store.Batch{}).OnDone(func(error) { close(in); <-out })
		<-in
		commit(t, s, store.Batch{Appends: appends(run1, 1, 1)})
		late := make(chan error, 1)
		ticket := s.Enqueue(store.Batch{})
		if err := ticket.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		ticket.OnDone(func(err error) { late <- err })
		select {
		case <-late:
			t.Error("a later callback overtook")
		default:
		}
		close(out)
		if err := <-late; err != nil {
			t.Error(err)
		}
	}},
	{name: "S5.5 a callback sees its batch committed and may enqueue", check: func(t *testing.T, s store.Store) {
		second := make(chan *store.Ticket, 1)
		s.Enqueue(store.Batch{Puts: []store.Put{put("a", "k", "1")}}).OnDone(func(error) {
			wantValue(t, s, "a", "k", "1")
			second <- s.Enqueue(store.Batch{Puts: []store.Put{put("a", "k", "2")}})
		})
		if err := (<-second).Wait(context.Background()); err != nil {
			t.Error(err)
		}
		wantValue(t, s, "a", "k", "2")
	}},
	{name: "S5.6 a lazy batch is committed within 50 ms", bubble: inBubble(func(t *testing.T, s store.Store) {
		begin := time.Now() // the bubble's time
		commit(t, s, store.Batch{Lazy: true})
		synctest.Wait()
		if d := time.Since(begin); d > 50*time.Millisecond {
			t.Errorf("woken after %v", d)
		}
	})},
}
