package storetest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

var closeClauses = []clause{
	{name: "S7.1 close commits queued batches, lazy ones without delay", bubble: inBubble(func(t *testing.T, s store.Store) {
		begin := time.Now()
		var tickets []*store.Ticket
		for seq := uint64(1); seq <= 20; seq++ {
			tickets = append(tickets, s.Enqueue(store.Batch{Appends: appends(run1, seq, seq), Lazy: true}))
		}
		called := 0
		tickets[19].OnDone(func(error) { time.Sleep(time.Second); called++ })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if called != 1 {
			t.Error("close returned before the callbacks had run")
		}
		for _, ticket := range tickets {
			if err := ticket.Wait(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if st := s.Stats(); st.Records != 20 || st.Queued != 0 {
			t.Errorf("stats %+v", st)
		}
		if d := time.Since(begin); d != time.Second {
			t.Errorf("took %v, of which the callback 1s", d)
		}
	})},
	{name: "S7.2 after close every method returns ErrClosed", check: func(t *testing.T, s store.Store) {
		digest, _ := s.PutBlob([]byte("a"))
		done := s.Enqueue(store.Batch{})
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		ticket := s.Enqueue(store.Batch{})
		wantIs(t, ticket.Wait(context.Background()), store.ErrClosed)
		wantIs(t, s.Journal(run1, 0, nil), store.ErrClosed)
		_, _, err := s.LastSeq(run1)
		wantIs(t, err, store.ErrClosed)
		_, _, err = s.Get("a", []byte("k"))
		wantIs(t, err, store.ErrClosed)
		wantIs(t, s.Scan("a", nil, nil, false, nil), store.ErrClosed)
		_, err = s.PutBlob([]byte("a"))
		wantIs(t, err, store.ErrClosed)
		_, err = s.Blob(digest)
		wantIs(t, err, store.ErrClosed)
		_, _, err = s.(sweeper).SweepBlobs(func(string) bool { return false })
		wantIs(t, err, store.ErrClosed)
		called := make(chan error, 2)
		ticket.OnDone(func(err error) { called <- err })
		wantIs(t, <-called, store.ErrClosed)
		done.OnDone(func(err error) { called <- err })
		if err := <-called; err != nil {
			t.Errorf("a committed batch reports %v", err)
		}
	}},
	{name: "S7.3 with close during use each batch is committed or ErrClosed", check: func(t *testing.T, s store.Store) {
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					ticket := s.Enqueue(store.Batch{Puts: []store.Put{put("a", "k", "v")}, Lazy: i%3 == 0})
					if i == 5 {
						started <- struct{}{}
					}
					if err := ticket.Wait(context.Background()); err != nil {
						wantIs(t, err, store.ErrClosed)
						return
					}
					if _, _, err := s.Get("a", []byte("k")); err != nil {
						wantIs(t, err, store.ErrClosed)
						return
					}
				}
			})
		}
		for range 4 {
			<-started
		}
		for range 3 {
			wg.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}},
	{name: "S7.4 an idle store has no timer", bubble: inBubble(func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{})
		synctest.Wait() // would not return while a goroutine runs
		begin := time.Now()
		time.Sleep(time.Hour)
		if time.Since(begin) != time.Hour || s.Stats().Commits != 1 {
			t.Error("an idle store committed or ended the sleep early")
		}
	})},
}
