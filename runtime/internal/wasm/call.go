package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// call is one use of an instance: its deadline, its limits, its answers. It is
// used by the goroutine that makes the call alone.
type call struct {
	ctx    context.Context // ends when the call must
	limits Limits
	answer CallFunc
	seed   uint64
	base   time.Time
	logger *slog.Logger

	// The guest's own time is metered apart, because a host call may rightly
	// take hours, for a person or a model, and a guest that loops may not.
	compute time.Duration
	left    time.Duration // of it, when the timer was last set
	since   time.Time     // when it was set
	timer   *time.Timer

	inst    *instance // the one in use
	err     error     // why the guest was unwound; the engine wraps what it carries, this is the original
	written int       // bytes to stdout and stderr
}

// callKey is the key of the call in the ctx of a host function.
type callKey struct{}

// callFrom returns the call that a host function belongs to, nil in a start
// section, which wazero runs before any call.
func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// errUnwind is what a host function panics with to leave the guest; the engine
// brings it back as an ordinary error, and call.err says what it stands for.
var errUnwind = errors.New("unwound by the host")

// errCompute ends the ctx of a call whose guest ran too long.
var errCompute = errors.New("compute time is used up")

// errClosed ends the ctx of every call when the host closes.
var errClosed = errors.New("the host is closing")

// errTimeout ends the ctx of a call at Invocation.Timeout.
var errTimeout = errors.New("timeout")

// newCall starts the call's clocks. done must be called when it is over.
func (h *Host) newCall(ctx context.Context, inv Invocation) (c *call, done func()) {
	c = &call{limits: inv.Limits, answer: inv.Call, seed: inv.Seed, base: inv.ClockBase, compute: inv.Compute, logger: h.logger}
	stopTimeout := context.CancelFunc(func() {})
	if inv.Timeout > 0 {
		ctx, stopTimeout = context.WithTimeoutCause(ctx, inv.Timeout, errTimeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.ctx, c.left, c.since = ctx, c.compute, time.Now()
	// A cause tells later which of the four ends it was.
	c.timer = time.AfterFunc(c.left, func() { cancel(errCompute) })
	stopClose := context.AfterFunc(h.ctx, func() { cancel(errClosed) })
	return c, func() {
		c.timer.Stop()
		stopClose()
		cancel(nil)
		stopTimeout()
	}
}

// pause stops the guest's compute time while the host works; resume goes on.
func (c *call) pause() {
	c.timer.Stop()
	c.left -= time.Since(c.since)
}

func (c *call) resume() {
	c.since = time.Now()
	c.timer.Reset(max(c.left, 0))
}

// unwind leaves the guest; the call ends with err.
func (c *call) unwind(err error) {
	if c.err == nil {
		c.err = err
	}
	panic(errUnwind)
}

// check leaves the guest if the call is over. The host's functions begin with it:
// a guest may call them in a straight line, without an interruption point of its own.
func (c *call) check() {
	if c.ctx.Err() != nil {
		c.unwind(c.ended())
	}
}

// ended says why ctx is over, as an error with a code.
func (c *call) ended() error {
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

// errSleep is the end of a guest that waits on its own clock.
func errSleep(limit time.Duration) error {
	return &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("the plugin slept for more than %s", limit),
		Hint: "a plugin waits with sentinel_wait; its own sleep takes no real time"}
}

// host answers one host call. It leaves by its result or by unwind, from this
// frame and no deeper one; nothing else may panic through the guest, for the
// engine would put a stack trace of the host into the error.
func (c *call) host(function string, handle uint64) uint64 {
	c.pause()
	defer c.resume()
	c.check()
	body, err := c.reply(function, handle)
	if err != nil {
		c.unwind(err)
	}
	out, err := c.inst.callMemory.write(body)
	if err != nil {
		c.unwind(err)
	}
	return out
}

// reply returns the answer to a host call, or the error that unwinds.
func (c *call) reply(function string, handle uint64) (body []byte, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.log(fmt.Sprintf("host call %s: %v", function, fault), fmt.Errorf("%s", debug.Stack()))
			body, err = nil, abi.New(abi.Internal, fmt.Sprintf("call %s: a fault of the host", function))
		}
	}()
	// Checked before anything is copied.
	if n := c.inst.callMemory.length(handle); n > uint64(c.limits.MessageBytes) {
		return errorReply(abi.Limit, fmt.Sprintf("call %s: a request of %d bytes, at most %d are allowed", function, n, c.limits.MessageBytes)), nil
	}
	request, ok := c.inst.callMemory.read(handle)
	if !ok {
		return errorReply(abi.BadFields, fmt.Sprintf("call %s: handle %d names no request", function, handle)), nil
	}
	if c.answer == nil {
		return errorReply(abi.Denied, fmt.Sprintf("call %s: no host calls are answered here", function)), nil
	}
	reply, err := c.answer(c.ctx, function, request)
	if err != nil {
		return nil, err
	}
	c.inst.clock.jump(reply.Now)
	if len(reply.Body) > c.limits.MessageBytes {
		return errorReply(abi.Limit, fmt.Sprintf("call %s: an answer of %d bytes, at most %d are allowed", function, len(reply.Body), c.limits.MessageBytes)), nil
	}
	return reply.Body, nil
}

// errorReply is the answer {"error": ...}.
func errorReply(code abi.Code, message string) []byte {
	body, err := json.Marshal(map[string]*abi.Error{"error": abi.New(code, message)})
	if err != nil {
		panic(err) // two strings cannot fail
	}
	return body
}

// maxGuestError bounds the text a guest gives as its error, in bytes.
const maxGuestError = 16 << 10

// guestError reads what a guest gave to error_set: an error object, or words.
func guestError(text string) error {
	var e abi.Error
	if len(text) <= maxGuestError && json.Unmarshal([]byte(text), &e) == nil && e.Message != "" {
		if !slices.Contains(abi.Codes(), e.Code) {
			e.Code = abi.Plugin
		}
		return &e
	}
	return abi.New(abi.Plugin, clip(text, maxGuestError))
}

// log tells the operator of a fault of ours; guests and users never see err.
func (c *call) log(what string, err error) { c.logger.Error(what, "error", err) }

// firstLine returns text up to its first line break.
func firstLine(text string) string {
	for i := range text {
		if text[i] == '\n' {
			return text[:i]
		}
	}
	return text
}

// clip cuts text to at most n bytes of valid UTF-8.
func clip(text string, n int) string {
	if len(text) > n {
		// Back to a character's start, so that none is cut in two.
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	out := make([]rune, 0, len(text))
	for _, r := range text { // an invalid byte ranges as the replacement character
		out = append(out, r)
	}
	return string(out)
}
