package eventlog

import (
	"cmp"
	"context"
	"sync"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Emission is the events that one call emits: who is behind them, and, for a host call of a
// run, their bytes, against the limit of the run's iteration. The context of a command carries it,
// so that both hold whether it emits through [Log.Emit] or in a transaction of documents. The end
// of a host call records the number, and a resumed run adds up the records.
//
// # Concurrency
//
// Safe for concurrent use. A nil emission, of an event of the host itself, counts nothing.
type Emission struct {
	by      string // the agent or model behind the events, "" for none
	reserve func(name string, size int64) error
	release func(size int64)

	mu    sync.Mutex
	bytes int64 // of names and data
	rated bool  // the rate has let one of its events through
}

// NewEmission returns an emission without events. by is the agent or model behind them, "" for
// none. reserve counts an event of size bytes for the run's iteration, or returns the error limit
// if that does not fit; it is nil for a call that no run makes. release takes bytes back; it is
// called under the mutex of the emission.
func NewEmission(by string, reserve func(name string, size int64) error, release func(size int64)) *Emission {
	return &Emission{by: by, reserve: reserve, release: release}
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

// signed returns an event with who is behind it, unless it says that already.
func (m *Emission) signed(e sentinels.Event) sentinels.Event {
	if m != nil {
		e.By = cmp.Or(e.By, m.by)
	}
	return e
}

// Add counts an event, or returns the error limit if it does not fit.
func (m *Emission) Add(e sentinels.Event) error {
	if m == nil || m.reserve == nil {
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

// underRate calls check, which compares the rate of by with its limit, for the first event, and owe for those behind it:
// what a call does as a whole is not refused halfway, after a long verification or for the size of an import.
func (m *Emission) underRate(check func() error, owe func()) error {
	if m == nil {
		return check()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rated {
		owe()
		return nil
	}
	err := check()
	m.rated = err == nil
	return err
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
