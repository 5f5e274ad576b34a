package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

var batchClauses = []clause{
	{name: "S4.1 a refused batch has no effect", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Puts: []store.Put{put("a", "k", "1")}, Appends: appends(run1, 1, 2)})
		for name, b := range map[string]store.Batch{
			"check":    {Puts: []store.Put{{Bucket: "a", Key: []byte("x"), Check: func([]byte, bool) error { return errNo }}}},
			"sequence": {Appends: appends(run2, 2, 2)},
			"shape":    {Puts: []store.Put{put("a", "", "")}},
			"panic":    {Puts: []store.Put{{Bucket: "a", Key: []byte("x"), Check: func([]byte, bool) error { panic("oh") }}}},
		} {
			b.Puts = append([]store.Put{put("a", "k", "2"), put("new", "k", "3")}, b.Puts...)
			b.Appends = append(appends(run1, 3, 3), b.Appends...)
			b.Trims = []store.Trim{{Run: run1, From: 1, To: 1}}
			if err := s.Enqueue(b).Wait(context.Background()); err == nil {
				t.Errorf("%s: committed", name)
			}
		}
		wantValue(t, s, "a", "k", "1")
		wantNone(t, s, "a", "x")
		wantNone(t, s, "new", "k")
		wantJournal(t, s, run1, 0, 1, 2)
	}},
	{name: "S4.2 a check sees all earlier batches and its error is the batch's", check: func(t *testing.T, s store.Store) {
		release := blockWriter(t, s)
		next := func(from, to string) *store.Ticket {
			return s.Enqueue(store.Batch{Puts: []store.Put{{
				Bucket: "a", Key: []byte("k"), Value: []byte(to),
				Check: func(current []byte, exists bool) error {
					if string(current) != from || exists != (from != "") {
						return fmt.Errorf("%w: %q, %v", errNo, current, exists)
					}
					return nil
				},
			}}})
		}
		ok1, bad, ok2 := next("", "1"), next("", "2"), next("1", "3")
		release()
		for _, c := range []struct {
			ticket *store.Ticket
			want   error
		}{{ok1, nil}, {bad, errNo}, {ok2, nil}} {
			if err := c.ticket.Wait(context.Background()); !errors.Is(err, c.want) {
				t.Errorf("commit: %v, want %v", err, c.want)
			}
		}
		wantValue(t, s, "a", "k", "3")
	}},
	{name: "S4.3 checks see the state before their batch", check: func(t *testing.T, s store.Store) {
		absent := func(_ []byte, exists bool) error {
			if exists {
				return errNo
			}
			return nil
		}
		commit(t, s, store.Batch{Puts: []store.Put{
			{Bucket: "a", Key: []byte("k"), Value: []byte("1"), Check: absent},
			{Bucket: "a", Key: []byte("k"), Value: []byte("2"), Check: absent},
		}})
		refuse(t, s, store.Batch{Puts: []store.Put{{Bucket: "a", Key: []byte("k"), Delete: true, Check: absent}}}, errNo)
		wantValue(t, s, "a", "k", "2")
	}},
	{name: "S4.4 queued batches share one commit, and the counts are exact", check: func(t *testing.T, s store.Store) {
		before := s.Stats()
		release := blockWriter(t, s)
		var last *store.Ticket
		for seq := uint64(1); seq <= 100; seq++ {
			last = s.Enqueue(store.Batch{
				Appends: []store.Append{{Run: run1, Seq: seq, Record: []byte("12345")}},
				Puts:    []store.Put{put("a", "key", "value")},
				Trims:   []store.Trim{{Run: run2, To: store.All}},
				Lazy:    seq%2 == 0,
			})
		}
		refused := s.Enqueue(store.Batch{Appends: appends(run1, 7, 7)})
		if q := s.Stats(); q.Queued != 102 || q.QueuedBytes != 100*(5+8)+2 {
			t.Errorf("while blocked: %d batches, %d bytes queued", q.Queued, q.QueuedBytes)
		}
		release()
		if err := last.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		wantIs(t, refused.Wait(context.Background()), store.ErrSequence)
		after := s.Stats()
		got := [8]uint64{
			after.Commits - before.Commits, after.Batches - before.Batches, after.Records - before.Records,
			after.Puts - before.Puts, after.Trims - before.Trims, after.Bytes - before.Bytes,
			after.Refused - before.Refused, uint64(after.Queued),
		}
		// The first commit is that of blockWriter: one put with a key of one
		// byte.
		if want := [8]uint64{2, 101, 100, 101, 100, 100*(5+8) + 1, 1, 0}; got != want {
			t.Errorf("commits, batches, records, puts, trims, bytes, refused, queued: %v, want %v", got, want)
		}
	}},
	{name: "S4.5 batches that wait for each other have a commit each", check: func(t *testing.T, s store.Store) {
		for seq := uint64(1); seq <= 5; seq++ {
			commit(t, s, store.Batch{Appends: appends(run1, seq, seq)})
			if n := s.Stats().Commits; n != seq {
				t.Fatalf("%d commits after %d batches", n, seq)
			}
		}
		refuse(t, s, store.Batch{Appends: appends(run1, 1, 1)}, store.ErrSequence)
		if n := s.Stats().Commits; n != 5 {
			t.Errorf("a refused batch made a commit: %d", n)
		}
	}},
	{name: "S4.6 a lazy batch waits for another batch or 50 ms, in order", bubble: inBubble(func(t *testing.T, s store.Store) {
		lazy := func(seq uint64) { s.Enqueue(store.Batch{Appends: appends(run1, seq, seq), Lazy: true}) }
		wantCommits := func(want uint64) {
			t.Helper()
			synctest.Wait()
			if n := s.Stats().Commits; n != want {
				t.Fatalf("%d commits, want %d", n, want)
			}
		}
		lazy(1)
		time.Sleep(20 * time.Millisecond)
		lazy(2)
		wantCommits(0)
		time.Sleep(29 * time.Millisecond)
		wantCommits(0)
		time.Sleep(2 * time.Millisecond)
		wantCommits(1)
		wantJournal(t, s, run1, 0, 1, 2)
		lazy(3)
		commit(t, s, store.Batch{Appends: appends(run1, 4, 4)})
		wantCommits(2)
		lazy(5)
		wantCommits(2)
		time.Sleep(51 * time.Millisecond)
		wantCommits(3)
		wantLast(t, s, run1, 5)
	})},
	{name: "S4.7 with many producers every journal is without gaps", check: func(t *testing.T, s store.Store) {
		const producers, each = 16, 60
		var wg sync.WaitGroup
		for p := range producers {
			run := fmt.Sprintf("0197a3c4-5b6d-7e8f-9a0b-%012x", p)
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(p), 1))
				for seq := uint64(1); seq <= each; seq++ {
					ticket := s.Enqueue(store.Batch{
						Appends: appends(run, seq, seq),
						Puts:    []store.Put{put("last", run, string(recordOf(seq)))},
						Lazy:    rng.IntN(2) == 0,
					})
					if rng.IntN(4) == 0 {
						if err := ticket.Wait(context.Background()); err != nil {
							t.Error(err)
							return
						}
						wantValue(t, s, "last", run, string(recordOf(seq)))
					}
				}
			})
		}
		wg.Wait()
		commit(t, s, store.Batch{})
		for p := range producers {
			wantLast(t, s, fmt.Sprintf("0197a3c4-5b6d-7e8f-9a0b-%012x", p), each)
		}
		if st := s.Stats(); st.Records != producers*each || st.Batches != producers*each+1 {
			t.Errorf("stats %+v", st)
		}
	}},
}
