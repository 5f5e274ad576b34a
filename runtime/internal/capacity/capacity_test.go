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

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := capacity.NewSlots(2)
		if err := s.Take(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		all := make(chan error, 1)
		go func() { all <- s.TakeAll(ctx) }()
		synctest.Wait()
		cancel(cause)
		if err := <-all; !errors.Is(err, cause) || s.Taken() != 1 {
			t.Errorf("take all: %v, %d slots are taken", err, s.Taken())
		}
		s.Give(false)
		if err := s.TakeAll(t.Context()); err != nil || s.Taken() != 2 {
			t.Errorf("take all: %v, %d slots are taken", err, s.Taken())
		}
		s.GiveAll()
		if s.Taken() != 0 {
			t.Errorf("%d slots are taken", s.Taken())
		}
	})
}

// TestSlotsOfHeldRuns: runs of agents and models have half of the slots, and one that waits for its half
// keeps no other from its slot.
func TestSlotsOfHeldRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := capacity.NewSlots(4)
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := make(chan error, 10)
		for range 10 {
			go func() { waits <- s.Take(ctx, true) }()
		}
		synctest.Wait()
		if s.Taken() != 2 {
			t.Errorf("held runs have %d of 4 slots", s.Taken())
		}
		for range 2 {
			if err := s.Take(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		}
		s.Give(true)
		synctest.Wait()
		if s.Taken() != 4 {
			t.Errorf("%d slots are taken after one was given to the next held run", s.Taken())
		}
		cause := errors.New("cause")
		cancel(cause)
		synctest.Wait()
		given := 0
		for range 10 {
			if err := <-waits; err == nil {
				given++
			} else if !errors.Is(err, cause) {
				t.Error(err)
			}
		}
		for range given - 1 {
			s.Give(true)
		}
		s.Give(false)
		s.Give(false)
		if err := s.TakeAll(t.Context()); given != 3 || err != nil || s.Taken() != 4 {
			t.Errorf("%d held runs had a slot; take all: %v, %d are taken", given, err, s.Taken())
		}
	})
}

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
