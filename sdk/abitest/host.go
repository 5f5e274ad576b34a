package abitest

import (
	"context"
	"encoding/json"
	"time"
)

// A Host is the adapter to a program that executes step plugins.
type Host interface {
	// Load checks a module and describes it. The error for a module that is refused
	// is an *abi.Error.
	Load(ctx context.Context, module []byte) (Guest, error)
}

// A Guest is one loaded module. The kit calls it from one goroutine.
type Guest interface {
	// Describe returns the manifest, clause A2.1.
	Describe(ctx context.Context) ([]byte, error)
	// Run executes one attempt of a step. Its error is an *abi.Error, or the error that
	// the Invocation's Call has returned.
	Run(ctx context.Context, inv Invocation) (Result, error)
	// Validate gets an input and returns an output as in clause A1.3. A module
	// without the export has no problems.
	Validate(ctx context.Context, input []byte) ([]byte, error)
	// Close frees the resources of the guest. It is called once.
	Close() error
}

// An Invocation is one attempt of one step.
type Invocation struct {
	Input []byte    // run input, clause A3
	Seed  uint64    // of the random numbers, clause A7
	Clock time.Time // its start
	Call  CallFunc  // nil answers every call with code denied
	// Compute limits the guest's own time; zero is the host's default.
	Compute time.Duration
	// The limits of clause A8, in bytes; zero is the default of A8.
	MemoryBytes  int64
	OutputBytes  int
	LogBytes     int
	MessageBytes int
}

// CallFunc answers one host call. An error ends the guest, and Run returns it.
type CallFunc func(ctx context.Context, function string, request []byte) (Reply, error)

// A Reply is the answer to a host call.
type Reply struct {
	Body []byte    // {"ok": value} or {"error": error object}
	Now  time.Time // when the call ended
}

// A Result is the result of Run. With an error, only Stderr is set.
type Result struct {
	Output json.RawMessage // the value of "output"
	Stderr string          // the end of the text that the guest wrote there
}
