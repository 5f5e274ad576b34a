package eventlog

import (
	"context"
	"sync"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Emission counts the events that one host call of a run emits, against the
// limit of the run's iteration. The context of a command carries it, so that its
// events count whether it emits them through [Log.Emit] or in a transaction of
// documents. The end of the call records the number, and a resumed run adds up the
// records.
//
// # Concurrency
//
// Safe for concurrent use. A nil emission, of an event that no run emits, counts
// nothing.
type Emission struct {
	reserve func(name string, size int64) error
	release func(size int64)

	mu    sync.Mutex
	bytes int64 // of names and data
}

// NewEmission returns an emission without events. reserve counts an event of size
// bytes for the run's iteration, or returns the error limit if that does not fit.
// release takes bytes back; it is called under the mutex of the emission.
func NewEmission(reserve func(name string, size int64) error, release func(size int64)) *Emission {
	return &Emission{reserve: reserve, release: release}
}

type emissionKey struct{}

// WithEmission returns a context whose events count for m.
func WithEmission(ctx context.Context, m *Emission) context.Context {
	return context.WithValue(ctx, emissionKey{}, m)
}

func emissionOf(ctx context.Context) *Emission {
	m, _ := ctx.Value(emissionKey{}).(*Emission)
	return m
}

// Add counts an event, or returns the error limit if it does not fit.
func (m *Emission) Add(e sentinels.Event) error {
	if m == nil {
		return nil
	}
	size := int64(len(e.Name) + len(e.Data))
	if err := m.reserve(e.Name, size); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += size
	return nil
}

// Revoke takes back what was counted, for events that are not emitted after all.
func (m *Emission) Revoke() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.release(m.bytes)
	m.bytes = 0
}

// Total returns the bytes of the events that were counted.
func (m *Emission) Total() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}
