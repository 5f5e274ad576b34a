package capacity

import "context"

// Slots are a semaphore: a run holds one slot while something of it executes. Runs that execute for
// agents and models, which are held, have half of the slots together: what is left is for persons,
// however many runs there are.
//
// # Concurrency
//
// Safe for concurrent use.
type Slots struct{ tokens, held chan struct{} }

// NewSlots returns n free slots.
func NewSlots(n int) *Slots {
	return &Slots{tokens: make(chan struct{}, n), held: make(chan struct{}, max(n/2, 1))}
}

// Take waits for a slot, or until ctx ends, whose cause it returns.
func (s *Slots) Take(ctx context.Context, held bool) error {
	if held {
		if err := enter(ctx, s.held); err != nil {
			return err
		}
	}
	err := enter(ctx, s.tokens)
	if err != nil && held {
		<-s.held
	}
	return err
}

func enter(ctx context.Context, tokens chan struct{}) error {
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Give returns a slot that was taken with the same held.
func (s *Slots) Give(held bool) {
	<-s.tokens
	if held {
		<-s.held
	}
}

// Taken returns how many slots are held.
func (s *Slots) Taken() int { return len(s.tokens) }

// TakeAll waits for every slot. A caller that has all of them knows that nothing
// executes, and that nothing can until GiveAll. On an error it has none.
func (s *Slots) TakeAll(ctx context.Context) error {
	for taken := range cap(s.tokens) {
		if err := s.Take(ctx, false); err != nil {
			for range taken {
				s.Give(false)
			}
			return err
		}
	}
	return nil
}

// GiveAll returns every slot.
func (s *Slots) GiveAll() {
	for range cap(s.tokens) {
		s.Give(false)
	}
}
