package capacity_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/capacity"
)

// TestResidents: the guest that has waited longest is evicted, by number and by bytes.
func TestResidents(t *testing.T) {
	r := capacity.NewResidents(2, 100)
	evicted := func(s *capacity.Stay) bool {
		select {
		case <-s.Evicted:
			return true
		default:
			return false
		}
	}
	a, b := r.Enter(10), r.Enter(10)
	c := r.Enter(10)
	if !evicted(a) || evicted(b) || evicted(c) {
		t.Error("not the guest that had waited longest was evicted, of three for two places")
	}
	r.Leave(b)
	r.Leave(a) // does nothing
	d := r.Enter(95)
	if !evicted(c) || evicted(d) || r.Count() != 1 {
		t.Errorf("%d guests wait, want the one that fits alone", r.Count())
	}
	if e := r.Enter(101); !evicted(e) || r.Count() != 0 {
		t.Errorf("%d guests wait, want none beside one that does not fit", r.Count())
	}
}

// TestTurns: after Gather, the step with the fewest crashes has the first turn.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns capacity.Turns
		turns.Gather()
		order := make(chan int, 3)
		var steps sync.WaitGroup
		for _, crashes := range []int{3, 1, 2} {
			steps.Go(func() {
				if err := turns.Take(t.Context(), crashes); err != nil {
					t.Error(err)
				}
				order <- crashes
				time.Sleep(time.Minute)
				turns.Give()
			})
		}
		steps.Wait()
		var got []int
		for range 3 {
			got = append(got, <-order)
		}
		if !slices.Equal(got, []int{1, 2, 3}) {
			t.Errorf("order of turns %v", got)
		}
	})
}

// TestTurnsCancelled: a waiter that gives up does not keep the turn from others.
func TestTurnsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns capacity.Turns
		if err := turns.Take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- turns.Take(ctx, 1) }()
		synctest.Wait()
		go func() { done <- turns.Take(t.Context(), 2) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		turns.Give()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e capacity.Effects
		if err := e.Wait(t.Context()); err != nil || !e.None() {
			t.Errorf("without effects: %v", err)
		}
		e.Begin()
		e.Begin()
		done := make(chan error, 1)
		go func() { done <- e.Wait(t.Context()) }()
		synctest.Wait()
		e.End()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Wait returned with an effect under way")
		default:
		}
		e.End()
		if err := <-done; err != nil || !e.None() {
			t.Errorf("after the end: %v", err)
		}
	})
}
