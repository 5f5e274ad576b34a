package runtime

import (
	"context"
	"fmt"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An emission counts the events that one host call of a run emits, against the
// limit of the run's iteration. The context of a command carries it, so that its
// events count whether it emits them through [Runtime.Emit] or a [RecordsTx].
// The end of the call records the number, and a resumed run adds up the records.
//
// # Concurrency
//
// Safe for concurrent use. A nil emission, of an event that no run emits, counts
// nothing.
type emission struct {
	run *run

	mu    sync.Mutex
	bytes int64 // of names and data
}

type emissionKey struct{}

func withEmission(ctx context.Context, m *emission) context.Context {
	return context.WithValue(ctx, emissionKey{}, m)
}

func emissionOf(ctx context.Context) *emission {
	m, _ := ctx.Value(emissionKey{}).(*emission)
	return m
}

// add counts an event, or returns the error limit if it does not fit.
func (m *emission) add(e sentinels.Event) error {
	if m == nil {
		return nil
	}
	size := int64(len(e.Name) + len(e.Data))
	if err := m.run.countEvent(e.Name, size); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += size
	return nil
}

// revoke takes back what was counted, for events that are not emitted after all.
func (m *emission) revoke() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	m.run.emitting -= m.bytes
	m.bytes = 0
}

// total returns the bytes of the events that were counted.
func (m *emission) total() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// countEvent counts an event of so many bytes for the run's iteration, unless
// that is more than an iteration may emit.
func (r *run) countEvent(name string, size int64) error {
	limit := r.rt.limits.EventBytes
	r.mu.Lock()
	defer r.mu.Unlock()
	emitted := r.state.EventBytes + r.emitting
	if emitted+size > limit {
		return &abi.Error{
			Code: abi.Limit,
			Message: fmt.Sprintf("eventBytes: event %q of %d bytes is too much for iteration %d: it has emitted %d bytes of events, the limit is %d",
				name, size, r.state.Iteration, emitted, limit),
			Hint: "put the data where subscribers can read it, such as a file or a record, and emit its name",
		}
	}
	r.emitting += size
	return nil
}
