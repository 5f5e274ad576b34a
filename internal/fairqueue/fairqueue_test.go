package fairqueue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
)

// entered is the order in which requests got their places.
type entered struct {
	mu    sync.Mutex
	names []string
}

// ask enters a queue behind all that wait already, and leaves it at once.
func (e *entered) ask(t *testing.T, q *fairqueue.Queue, name string) {
	go func() {
		leave, err := q.Enter(t.Context(), fairqueue.Of(name))
		if err != nil {
			t.Error(err)
			return
		}
		e.mu.Lock()
		e.names = append(e.names, name)
		e.mu.Unlock()
		leave()
	}()
	synctest.Wait()
}

// TestTurns: persons and held owners take turns, held owners among themselves too, whatever number of
// requests one of them has.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fairqueue.New(1)
		leave, err := q.Enter(t.Context(), fairqueue.Of("agent:a"))
		if err != nil {
			t.Fatal(err)
		}
		var got entered
		for _, name := range []string{"agent:a", "agent:a", "agent:a", "agent:a", "agent:b", "", ""} {
			got.ask(t, q, name)
		}
		if n := q.Waiting(fairqueue.Of("agent:a")); n != 4 {
			t.Errorf("%d requests of agent:a wait", n)
		}
		leave()
		synctest.Wait()
		if want := []string{"", "agent:a", "", "agent:b", "agent:a", "agent:a", "agent:a"}; !slices.Equal(got.names, want) {
			t.Errorf("the order is %q, want %q", got.names, want)
		}
	})
}

// TestHeldHaveHalf: owners that are held have half of the places together, and others all.
func TestHeldHaveHalf(t *testing.T) {
	for places, held := range map[int]int{0: 1, 1: 1, 2: 1, 4: 2, 5: 2} {
		q := fairqueue.New(places)
		for i := range held {
			if _, ok := q.TryEnter(fairqueue.Of(string(rune('a' + i)))); !ok {
				t.Errorf("%d places: the held owner %d is refused", places, i)
			}
		}
		if _, ok := q.TryEnter(fairqueue.Of("more")); ok {
			t.Errorf("%d places: more than %d are for owners that are held", places, held)
		}
		for i := range places - held {
			if _, ok := q.TryEnter(fairqueue.Of("")); !ok {
				t.Errorf("%d places: person %d is refused", places, i)
			}
		}
		if _, ok := q.TryEnter(fairqueue.Of("")); ok {
			t.Errorf("%d places: one more is taken", places)
		}
	}
}

// TestCancel: a request whose context ends leaves the queue and takes no place.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fairqueue.New(1)
		leave, err := q.Enter(t.Context(), fairqueue.Of(""))
		if err != nil {
			t.Fatal(err)
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() {
			_, err := q.Enter(ctx, fairqueue.Of("agent:a"))
			ended <- err
		}()
		synctest.Wait()
		if _, ok := q.TryEnter(fairqueue.Of("")); ok {
			t.Error("a place is taken twice")
		}
		cancel(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("the cancelled request: %v", err)
		}
		if _, err := q.Enter(ctx, fairqueue.Of("agent:a")); !errors.Is(err, why) {
			t.Errorf("a request that is cancelled before: %v", err)
		}
		leave()
		if _, ok := q.TryEnter(fairqueue.Of("agent:b")); !ok {
			t.Error("no place is free afterwards")
		}
	})
}

// TestEnterAll: all places are taken when those that others have are given back, or none at the end of the
// context, with its cause.
func TestEnterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fairqueue.New(4)
		leave, err := q.Enter(t.Context(), fairqueue.Of("agent:a"))
		if err != nil {
			t.Fatal(err)
		}
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := q.EnterAll(ctx)
			ended <- err
		}()
		synctest.Wait()
		cancel(cause)
		if err := <-ended; !errors.Is(err, cause) || q.Taken() != 1 {
			t.Errorf("all places at the end of the context: %v, %d are taken", err, q.Taken())
		}
		var behind entered
		for range 3 {
			behind.ask(t, q, "agent:b")
		}
		leave()
		leaveAll, err := q.EnterAll(t.Context())
		if err != nil || q.Taken() != 4 || len(behind.names) != 3 {
			t.Fatalf("all places: %v, %d are taken, %d others had one", err, q.Taken(), len(behind.names))
		}
		leaveAll()
		if q.Taken() != 0 {
			t.Errorf("%d places are taken", q.Taken())
		}
	})
}
