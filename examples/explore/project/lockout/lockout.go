// Package lockout counts failures and locks accounts.
package lockout

import (
	"sync"
	"time"
)

const (
	most = 5                // failures in a row
	wait = 15 * time.Minute // that an account is locked then
)

// A Guard counts failures by name.
type Guard struct {
	mu       sync.Mutex
	failures map[string]int
	until    map[string]time.Time
}

// New returns a Guard without failures.
func New() *Guard {
	return &Guard{failures: map[string]int{}, until: map[string]time.Time{}}
}

// Locked reports whether the account is locked now.
func (g *Guard) Locked(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.until[name])
}

// Failed counts a failure. The fifth in a row locks the account.
func (g *Guard) Failed(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures[name]++
	if g.failures[name] >= most {
		g.until[name] = time.Now().Add(wait)
		g.failures[name] = 0
	}
}

// Succeeded forgets the failures.
func (g *Guard) Succeeded(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.failures, name)
}
