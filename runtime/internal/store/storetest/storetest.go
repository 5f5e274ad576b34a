// Package storetest is the conformance test suite of [store.Store].
//
// Each clause has a number, S1 to S7 by subject. Behaviour that needs a disk,
// such as reopening and crashes, is tested with the implementation that has
// one.
package storetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// Run runs the suite. open must return a new, empty store; Run closes it. Some
// clauses open it inside a testing/synctest bubble.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, group := range []struct {
		name    string
		clauses []clause
	}{
		{"journal", journalClauses},
		{"pairs", pairClauses},
		{"scan", scanClauses},
		{"batch", batchClauses},
		{"ticket", ticketClauses},
		{"blob", blobClauses},
		{"close", closeClauses},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.clauses {
				t.Run(c.name, func(t *testing.T) {
					if c.bubble != nil {
						c.bubble(t, open)
						return
					}
					s := open(t)
					t.Cleanup(func() {
						if err := s.Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					})
					c.check(t, s)
				})
			}
		})
	}
}

// A clause has a store of its own. A clause with bubble opens and closes it
// itself.
type clause struct {
	name   string
	check  func(t *testing.T, s store.Store)
	bubble func(t *testing.T, open func(t *testing.T) store.Store)
}

// inBubble returns a clause that runs in a synctest bubble, with the bubble's
// time.
func inBubble(check func(t *testing.T, s store.Store)) func(*testing.T, func(*testing.T) store.Store) {
	return func(t *testing.T, open func(t *testing.T) store.Store) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t)
			check(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// Runs of the clauses, adjacent in key order.
const (
	run1 = "0197a3c4-5b6d-7e8f-9a0b-000000000001"
	run2 = "0197a3c4-5b6d-7e8f-9a0b-000000000002"
	run3 = "0197a3c4-5b6d-7e8f-9a0b-000000000003"
	runF = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

var errNo = errors.New("no")

func commit(t *testing.T, s store.Store, b store.Batch) {
	t.Helper()
	if err := s.Enqueue(b).Wait(context.Background()); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func refuse(t *testing.T, s store.Store, b store.Batch, want error) {
	t.Helper()
	if err := s.Enqueue(b).Wait(context.Background()); !errors.Is(err, want) {
		t.Fatalf("commit: %v, want %v", err, want)
	}
}

// appends returns the records from..to of a run. Their content is their number.
func appends(run string, from, to uint64) (list []store.Append) {
	for seq := from; seq <= to; seq++ {
		list = append(list, store.Append{Run: run, Seq: seq, Record: recordOf(seq)})
	}
	return list
}

func put(bucket, key, value string) store.Put {
	return store.Put{Bucket: bucket, Key: []byte(key), Value: []byte(value)}
}

func wantValue(t *testing.T, s store.Store, bucket, key, want string) {
	t.Helper()
	v, ok, err := s.Get(bucket, []byte(key))
	if err != nil || !ok || string(v) != want {
		t.Errorf("get %s/%s: %q, %v, %v, want %q", bucket, key, v, ok, err, want)
	}
}

func wantNone(t *testing.T, s store.Store, bucket, key string) {
	t.Helper()
	if v, ok, err := s.Get(bucket, []byte(key)); err != nil || ok || v != nil {
		t.Errorf("get %s/%s: %q, %v, %v, want nothing", bucket, key, v, ok, err)
	}
}

// blockWriter blocks the writer inside a transaction until release is called,
// so that a test can fill the queue.
func blockWriter(t *testing.T, s store.Store) (release func()) {
	t.Helper()
	in, out := make(chan struct{}), make(chan struct{})
	s.Enqueue(store.Batch{Puts: []store.Put{{
		Bucket: "hold", Key: []byte("k"), Check: func([]byte, bool) error {
			close(in)
			<-out
			return nil
		},
	}}})
	<-in
	return func() { close(out) }
}
