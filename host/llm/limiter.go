package llm

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// longestBlock is the longest wait for a provider within a turn. The turn fails at once where the
// provider has asked for more, and the step waits, which the trace shows and a restart survives.
const longestBlock = time.Minute

// A limiter lets the turns of one provider, which has one key, share what the provider allows: after a
// refusal for too many requests all of them wait as long as it asked, and then as many are made at once
// as were answered before. Turns are not limited until the provider refuses one.
type limiter struct {
	mu     sync.Mutex
	active int           // turns under way
	most   float64       // turns that may be under way; 0 for no limit
	until  time.Time     // the provider has asked for no request before
	change chan struct{} // closed when a turn ends
}

// begin waits until a turn may be made and returns how long that took.
func (l *limiter) begin(ctx context.Context, provider string) (waited time.Duration, err error) {
	started := time.Now()
	for {
		l.mu.Lock()
		now := time.Now()
		pause := l.until.Sub(now)
		if pause > longestBlock {
			l.mu.Unlock()
			return 0, &abi.Error{Code: abi.Unavailable, RetryAfterMs: pause.Milliseconds(),
				Message: fmt.Sprintf("provider %q: it has asked for no request within %s: none was made", provider, pause.Round(time.Second))}
		}
		if pause <= 0 && (l.most == 0 || float64(l.active) < math.Max(l.most, 1)) {
			l.active++
			l.mu.Unlock()
			return now.Sub(started), nil
		}
		if l.change == nil {
			l.change = make(chan struct{})
		}
		change := l.change
		l.mu.Unlock()
		timer := time.NewTimer(max(pause, 0))
		if pause <= 0 {
			timer.Stop() // another turn has to end
		}
		select {
		case <-change:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// end ends a turn. refused says that the provider had too many requests, and asked for a pause.
func (l *limiter) end(refused bool, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case refused && l.most == 0:
		l.most = math.Max(float64(l.active)/2, 1)
	case refused:
		l.most = math.Max(math.Min(l.most, float64(l.active))/2, 1)
	case l.most > 0:
		l.most += 1 / l.most // one more for each round of answers
	}
	if until := time.Now().Add(pause); refused && until.After(l.until) {
		l.until = until
	}
	if l.active--; l.active == 0 && !refused && time.Now().After(l.until.Add(longestBlock)) {
		l.most = 0 // it has answered all for a while
	}
	if l.change != nil {
		close(l.change)
		l.change = nil
	}
}
