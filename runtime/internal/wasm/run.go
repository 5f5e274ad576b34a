package wasm

import (
	"context"
	"encoding/json"
	"time"
)

// CallFunc answers one host call. It blocks until the answer is there and must
// return when ctx ends. The request is the guest's text, at most
// Limits.MessageBytes long and not yet parsed; it is the callee's to keep.
//
// An error unwinds the guest: its instance is thrown away and [Module.Run]
// returns that very error. So a refusal is no error, it is a Reply that holds
// {"error": ...}, and an error is how a step parks.
type CallFunc func(ctx context.Context, function string, request []byte) (Reply, error)

// Reply is the answer to a host call.
type Reply struct {
	Body []byte    // {"ok": value} or {"error": error object}
	Now  time.Time // when the call ended; the guest's clock jumps there, never back
}

// Invocation is one attempt of one step.
type Invocation struct {
	Input []byte // run input, ABI clause A3
	// Seed and ClockBase are the attempt's chance and start time, ABI clause A7.
	// Equal ones, with equal input and replies, give equal requests. A seed that
	// [Module.Seed] offered saves the call the making of an instance.
	Seed      uint64
	ClockBase time.Time
	Call      CallFunc // nil answers every call with code denied
	// Timeout bounds the whole call in real time, host calls included.
	// Default: ctx alone bounds it.
	Timeout time.Duration
	// Compute bounds the time the guest itself runs, host calls not counted,
	// and separately what it sleeps on its own clock. A Trusted module is not
	// interrupted and so checked only at its host calls. Default: 5 minutes.
	Compute time.Duration
	Limits  Limits
	// Pure asks for an instance that has run nothing before, also of a pooled
	// third-party module; set it when a step is replayed. Trusted modules are
	// tested to make the same requests whatever ran before, so it does not
	// concern them.
	Pure bool
}

// Limits bounds what one call may use. Zero fields take the defaults of ABI
// clause A8.
type Limits struct {
	MemoryBytes  int64 // linear memory; default 64 MiB
	OutputBytes  int   // output of run; default 1 MiB
	LogBytes     int   // stdout and stderr together; default 256 KiB
	MessageBytes int   // one request or answer of a host call; default 256 KiB
}

// Result is what a successful call gave.
type Result struct {
	Output      json.RawMessage // the value of "output"
	Stderr      string          // the last of what the guest wrote there, at most 4 KiB
	MemoryBytes int64           // linear memory of the instance at the end of the call
	Reused      bool            // the instance had run before
	Ahead       bool            // the instance was made before the call, and had not
}

// maxInput bounds the run input in bytes: it is in the call memory while the
// guest makes its copies.
const maxInput = 16 << 20

// withDefaults fills in what is zero.
func (inv Invocation) withDefaults() Invocation {
	if inv.Compute <= 0 {
		inv.Compute = 5 * time.Minute
	}
	if inv.Limits.MemoryBytes <= 0 {
		inv.Limits.MemoryBytes = 64 << 20
	}
	if inv.Limits.OutputBytes <= 0 {
		inv.Limits.OutputBytes = 1 << 20
	}
	if inv.Limits.LogBytes <= 0 {
		inv.Limits.LogBytes = 256 << 10
	}
	if inv.Limits.MessageBytes <= 0 {
		inv.Limits.MessageBytes = 256 << 10
	}
	return inv
}

// sleep is how long the guest may sleep on its own clock.
func (inv Invocation) sleep() time.Duration {
	if inv.Timeout > 0 {
		return inv.Timeout
	}
	return inv.Compute
}
