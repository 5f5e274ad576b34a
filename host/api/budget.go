package api

import (
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Limits of the bodies that are in memory at the same time, in bytes. Sixteen
// of the largest fit.
const (
	maxBodies     = 16 * maxCommandBody
	maxHookBodies = 16 * triggers.MaxBody
)

// budget limits the memory that the bodies of all requests share. It is safe
// for concurrent use.
type budget struct {
	max int64

	mu   sync.Mutex
	used int64
}

// reserve reserves n bytes until release is called. It does not block: a client
// that has to retry occupies nothing until then.
func (b *budget) take(n int64) (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.max {
		return nil, &abi.Error{Code: abi.Unavailable, Message: "too many large requests at once", RetryAfterMs: 1000}
	}
	b.used += n
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used -= n
	}, nil
}
