package cond

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
)

// markerValue is the kind of child that evaluates conditions.
const markerValue = "cond"

// Options configure an [Evaluator]. The zero value works, without a child.
type Options struct {
	// Child starts the processes of the child lane, a program whose main begins
	// with [ServeChild]. Default none: a condition that needs one is refused.
	Child subprocess.Command
	// MaxChildren bounds the processes alive at once. Default 2.
	MaxChildren int
	// FastTimeout bounds an evaluation in this process. One that passes it is
	// tried once more within ChildTimeout, for it was most likely this process
	// that got no time. Default 50 ms.
	FastTimeout time.Duration
	// ChildTimeout bounds an evaluation in a child, which is killed then.
	// Default 1 s.
	ChildTimeout time.Duration
	// ChildMemory is what a child may add, in bytes, to the data that the
	// program maps at its start. Default 256 MiB.
	ChildMemory int64
	// IdleTimeout ends a child that nobody used for so long. Default 1 minute.
	IdleTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.MaxChildren <= 0 {
		o.MaxChildren = 2
	}
	if o.FastTimeout <= 0 {
		o.FastTimeout = 50 * time.Millisecond
	}
	if o.ChildTimeout <= 0 {
		o.ChildTimeout = time.Second
	}
	if o.ChildMemory <= 0 {
		o.ChildMemory = 256 << 20
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = time.Minute
	}
	return o
}

// Vars returns the value of a variable as JSON, ok false if it has none. An
// evaluation asks once for each name that its source mentions. It must be safe
// to call from the goroutine that called Eval, and its values must not change
// until Eval has returned.
type Vars func(name string) (value json.RawMessage, ok bool)

// Value is what a condition came to.
type Value struct {
	// JSON is the value as JSON.stringify has it: null for NaN and the
	// infinities, nil for what JSON has no form for (undefined, a function).
	JSON json.RawMessage
	// Truthy is the truth JavaScript gives the value itself, so NaN is false
	// and Infinity true although both are null in JSON.
	Truthy bool
}
