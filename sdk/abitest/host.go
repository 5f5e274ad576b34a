package abitest

import (
	"context"
	"encoding/json"
	"time"
)

// A Host is what the kit needs of a program that runs step plugins.
type Host interface {
	// Load checks a module and describes it. The error of one that is refused is
	// an *abi.Error.
	Load(ctx context.Context, module []byte) (Guest, error)
}

// A Guest is one loaded module. The kit calls it from one goroutine.
type Guest interface {
	// Describe returns the manifest, clause A2.1.
	Describe(ctx context.Context) ([]byte, error)
	// Run carries out one attempt of a step. Its error is an *abi.Error, or the
	// very error that the Invocation's Call returned.
	Run(ctx context.Context, inv Invocation) (Result, error)
	// Validate answers the text of clause A1.3 with the text of its answer. A
	// module without the export has no problems.
	Validate(ctx context.Context, input []byte) ([]byte, error)
	// Close frees what the guest holds. It is called once.
	Close() error
}

// An Invocation is one attempt of one step.
type Invocation struct {
	Input []byte    // run input, clause A3
	Seed  uint64    // chance of the attempt, clause A7
	Clock time.Time // its start
	Call  CallFunc  // nil answers every call with code denied
	// Compute bounds the guest's own time; zero leaves it to the host.
	Compute time.Duration
	// The limits of clause A8, in bytes; zero is its default.
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

// A Result is what Run gave. With an error, only Stderr is of use.
type Result struct {
	Output json.RawMessage // the value of "output"
	Stderr string          // the last of what the guest wrote there
}
