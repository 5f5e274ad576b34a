package wire

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// errStalled is why a request ended whose server sends nothing any more.
var errStalled = errors.New("the server sends nothing any more")

// watch ends a request whose body brings nothing for a while. The header has a
// limit of its own in the transport; a body has none there.
func watch(body io.ReadCloser, stall time.Duration, cancel context.CancelCauseFunc) io.ReadCloser {
	w := &watched{body: body, cancel: cancel, stall: stall}
	w.timer = time.AfterFunc(stall, func() {
		w.mu.Lock()
		w.stalled = true
		w.mu.Unlock()
		cancel(errStalled)
	})
	return w
}

// A watched body belongs to one reader; its timer is stopped by Close.
type watched struct {
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	stall  time.Duration
	timer  *time.Timer

	mu      sync.Mutex // guards stalled, which the timer sets
	stalled bool
}

// Read gives the body another span of time with every byte that comes. A server
// that sends one byte a span is slow and not silent; the context's time in all is
// what ends it.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if n > 0 {
		w.timer.Reset(w.stall)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.stalled {
			err = errStalled // and not that the request was cancelled, which is how
		}
	}
	return n, err
}

// Close ends the timer and the request. The timer may fire meanwhile,
// which then cancels a request that has ended.
func (w *watched) Close() error {
	w.timer.Stop()
	err := w.body.Close()
	w.cancel(nil)
	return err
}
