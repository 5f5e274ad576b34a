package runtime

import (
	"context"
	"sync"
)

// A gate holds back the steps of a paused run.
//
// # Concurrency
//
// Safe for concurrent use.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while open, else closed by open
}

func newGate() *gate { return &gate{} }

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened == nil
}

// waitWhilePaused blocks while the gate is shut.
func (g *gate) wait(ctx context.Context) error {
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
