package cond

import (
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
)

// childKind is the kind of child that evaluates conditions.
const childKind = "cond"

// Options configure an [Evaluator]. The zero value works, without child
// processes.
type Options struct {
	// Child is the command that starts a child process: a program whose main
	// begins with [ServeChild]. Default none: conditions that need a child are
	// refused.
	Child subprocess.Command
	// MaxChildren bounds the number of child processes. Default 2.
	MaxChildren int
	// FastTimeout bounds an evaluation in this process. After a timeout the
	// evaluation is repeated once within ChildTimeout, because most likely this
	// process was not scheduled. Default 50 ms.
	FastTimeout time.Duration
	// ChildTimeout bounds the processor time of an evaluation in a child, which is
	// killed then. On the wall it may take ten times as long; where the system has
	// no clock for a process (not Linux), this is the limit on the wall. Default 1 s,
	// and one more for every 4 MiB of variables.
	ChildTimeout time.Duration
	// ChildMemory is how much memory a child may use, in bytes, in addition to
	// what the program maps at its start. Default 1 GiB.
	ChildMemory int64
	// IdleTimeout is after how long an unused child is stopped. Default 1
	// minute.
	IdleTimeout time.Duration
	// OnFileShortage is called before each wait for a file descriptor that the
	// start of a child needs. Default: nothing is called.
	OnFileShortage func(err error, wait time.Duration)
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
		o.ChildMemory = 1 << 30
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = time.Minute
	}
	if o.OnFileShortage == nil {
		o.OnFileShortage = func(error, time.Duration) {}
	}
	return o
}

// Vars returns the value of a variable as JSON, ok false if it has none. An
// evaluation calls it once for each name in its source, on the goroutine that
// called Eval. The value must not change until Eval has returned.
type Vars func(name string) (value json.RawMessage, ok bool)

// Value is the result of a condition.
type Value struct {
	// JSON is the value as formatted by JSON.stringify: null for NaN and the
	// infinities, nil for values without a JSON form (undefined, a function).
	JSON json.RawMessage
	// Truthy is the truth value in JavaScript. So NaN is false and Infinity is
	// true, although both are null in JSON.
	Truthy bool
	// NotFinite reports that the value is NaN or an infinity.
	NotFinite bool
}
