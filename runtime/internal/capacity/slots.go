package capacity

import "context"

// Slots are a semaphore: a run holds one slot while something of it executes.
//
// # Concurrency
//
// Safe for concurrent use.
type Slots struct{ tokens chan struct{} }

// NewSlots returns n free slots.
func NewSlots(n int) *Slots { return &Slots{make(chan struct{}, n)} }

// Take waits for a slot, or until ctx ends, whose cause it returns.
func (s *Slots) Take(ctx context.Context) error {
	select {
	case s.tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Give returns a slot.
func (s *Slots) Give() { <-s.tokens }

// Taken returns how many slots are held.
func (s *Slots) Taken() int { return len(s.tokens) }

// TakeAll waits for every slot. A caller that has all of them knows that nothing
// executes, and that nothing can until GiveAll. On an error it has none.
func (s *Slots) TakeAll(ctx context.Context) error {
	for taken := range cap(s.tokens) {
		if err := s.Take(ctx); err != nil {
			for range taken {
				s.Give()
			}
			return err
		}
	}
	return nil
}

// GiveAll returns every slot.
func (s *Slots) GiveAll() {
	for range cap(s.tokens) {
		s.Give()
	}
}
