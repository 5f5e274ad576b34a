package clock

import (
	"context"
	"sync"
)

// A Gate blocks callers while it is shut. The zero value is open.
//
// # Concurrency
//
// Safe for concurrent use.
type Gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while open, else closed by Open
}

// Shut shuts the gate.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// Open opens the gate and releases the callers of Wait.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// IsOpen reports whether the gate is open.
func (g *Gate) IsOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened == nil
}

// waitWhilePaused blocks while the gate is shut.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if opened == nil {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
