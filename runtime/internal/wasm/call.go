package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// call is one call of an export: its deadlines, its limits, its host calls. Only the
// goroutine that makes the call uses it.
type call struct {
	ctx    context.Context // ends when the call must end
	limits Limits
	onCall CallFunc // answers host calls
	seed   uint64
	base   time.Time
	logger *slog.Logger

	// The time in which the guest computes is limited by itself, because a host call
	// may take hours, for a person or a model.
	compute   time.Duration
	remaining time.Duration // of compute, when the timer was last started
	startedAt time.Time     // when the timer was last started
	timer     *time.Timer

	handles     bool              // the guest takes handles of large values
	byHandle    map[uint64][]byte // by the handles of their blocks, the values that the guest got
	handleBytes int               // their bytes
	copied      int64             // bytes that the guest has read from and written to the call memory

	inst    *instance
	err     error // why the guest was unwound, not wrapped by wazero
	written int   // bytes to stdout and stderr
}

// callKey is the key of the call in the ctx of a host function.
type callKey struct{}

// callFrom returns the call that a host function belongs to, nil in a start
// section, which wazero runs before any call.
func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// errUnwind is the panic of a host function that unwinds the guest. wazero returns
// it as an error, and call.err has the reason.
var errUnwind = errors.New("unwound by the host")

// errCompute ends the ctx of a call whose guest ran too long.
var errCompute = errors.New("compute time exceeded")

// errClosed ends the ctx of every call when the host closes.
var errClosed = errors.New("the host is closing")

// errTimeout ends the ctx of a call at Invocation.Timeout.
var errTimeout = errors.New("timeout")

// newCall creates a call and starts its timers. done must be called at its end.
func (h *Host) newCall(ctx context.Context, inv Invocation) (c *call, done func()) {
	c = &call{limits: inv.Limits, onCall: inv.Call, seed: inv.Seed, base: inv.ClockBase, compute: inv.Compute, logger: h.logger}
	stopTimeout := context.CancelFunc(func() {})
	if inv.Timeout > 0 {
		ctx, stopTimeout = context.WithTimeoutCause(ctx, inv.Timeout, errTimeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.ctx, c.remaining, c.startedAt = ctx, c.compute, time.Now()
	// The cause tells endError which of the four deadlines it was.
	c.timer = time.AfterFunc(c.remaining, func() { cancel(errCompute) })
	stopClose := context.AfterFunc(h.ctx, func() { cancel(errClosed) })
	return c, func() {
		c.timer.Stop()
		stopClose()
		cancel(nil)
		stopTimeout()
	}
}

// pauseCompute stops the timer of the guest's compute time during a host call.
func (c *call) pauseCompute() {
	c.timer.Stop()
	c.remaining -= time.Since(c.startedAt)
}

// resumeCompute starts the timer again.
func (c *call) resumeCompute() {
	c.startedAt = time.Now()
	c.timer.Reset(max(c.remaining, 0))
}

// unwind panics out of the guest. The call ends with err.
func (c *call) unwind(err error) {
	if c.err == nil {
		c.err = err
	}
	panic(errUnwind)
}

// checkEnded unwinds the guest if the ctx of the call has ended. Host functions begin
// with it, because a guest may call them in a straight line without an interruption
// point.
func (c *call) checkEnded() {
	if c.ctx.Err() != nil {
		c.unwind(c.endError())
	}
}

// endError returns the error, with a code, for the end of ctx.
func (c *call) endError() error {
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errCompute):
		return abi.New(abi.Timeout, fmt.Sprintf("the plugin computed for more than %s", c.compute))
	case errors.Is(cause, errTimeout), errors.Is(cause, context.DeadlineExceeded):
		return abi.New(abi.Timeout, "the step's time limit is reached")
	case errors.Is(cause, errClosed):
		return abi.New(abi.Cancelled, "the plugin host is closing")
	case abi.As(cause) != nil:
		return cause
	default:
		return abi.New(abi.Cancelled, "the call was cancelled")
	}
}

// errSleep is the error of a guest that sleeps too long on its own clock.
func errSleep(limit time.Duration) error {
	return &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("the plugin slept for more than %s", limit),
		Hint: "a plugin waits with sentinel_wait; its own sleep takes no real time"}
}

// log logs a fault of the host for the operator. Guests and users do not see err.
func (c *call) log(what string, err error) { c.logger.Error(what, "error", err) }
