package cli

import (
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// A feed carries progress from the engine, which must not wait, to a terminal,
// which may be slow. It holds what has not been taken yet.
//
// # Concurrency
//
// put may be called by anyone; one goroutine takes.
type feed struct {
	more chan struct{} // capacity 1: there is something to take

	mu   sync.Mutex
	held []runtime.Progress
}

func newFeed() *feed { return &feed{more: make(chan struct{}, 1)} }

// put takes one event and never waits; it is the engine that calls.
func (f *feed) put(p runtime.Progress) {
	f.mu.Lock()
	f.held = append(f.held, p)
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// take returns what was put since the last take, in order.
func (f *feed) take() []runtime.Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := f.held
	f.held = nil
	return held
}
