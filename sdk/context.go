package sdk

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Context is one attempt of one step: its input, and access to the host.
//
// Each method that calls the host blocks until the answer arrives. The module may be
// unloaded meanwhile and executed again from its start later; calls that have been
// answered then return the same answer at once. Every error is an *[Error].
//
// # Concurrency
//
// A Context must be used by one goroutine only. Use [Context.Blocks] to execute
// nested steps concurrently.
type Context struct {
	Step    StepInfo
	Run     RunInfo
	Attempt int // from 1

	// Retry describes the attempt before this one; nil for the first attempt.
	Retry *Retry
	// State is the value of this attempt's last [Context.Checkpoint], absent
	// if there was none.
	State Value

	fields Value
	caller Caller
}

// StepInfo identifies the step.
type StepInfo struct {
	Type    string
	ID      string // empty if the definition gives none
	Name    string // likewise
	Address string // position in the definition: "3.then.0"
	Path    string // position in the run: "1#7.steps.0"
	OnError string // what the host does after an error of the step: "skip", "retry", or empty for "fail"
}

// RunInfo identifies the run of the step.
type RunInfo struct {
	ID        string
	Sentinel  string
	Iteration int64  // from 1
	Workspace string // absolute path, for messages: a guest has no files
	Key       string // idempotency key of this step execution, equal for all attempts
}

// A Retry describes the attempt before.
type Retry struct {
	Attempts int64 // number of attempts so far
	Error    *Error
	Category string // of the error, as the host classified it
}

func newContext(in Value, caller Caller) *Context {
	step, run := in.Get("step"), in.Get("run")
	c := &Context{
		Step: StepInfo{
			Type:    step.Get("type").StringOr(""),
			ID:      step.Get("id").StringOr(""),
			Name:    step.Get("name").StringOr(""),
			Address: step.Get("address").StringOr(""),
			Path:    step.Get("path").StringOr(""),
			OnError: step.Get("onError").StringOr(""),
		},
		Run: RunInfo{
			ID:        run.Get("id").StringOr(""),
			Sentinel:  run.Get("sentinel").StringOr(""),
			Iteration: run.Get("iteration").IntOr(1),
			Workspace: run.Get("workspace").StringOr(""),
			Key:       run.Get("key").StringOr(""),
		},
		Attempt: int(in.Get("attempt").IntOr(1)),
		State:   in.Get("state"),
		fields:  step.Get("fields"),
		caller:  caller,
	}
	if r := in.Get("retry"); r.Given() {
		c.Retry = &Retry{
			Attempts: r.Get("attempts").IntOr(0),
			Error:    ErrorFrom(r.Get("error")),
			Category: r.Get("category").StringOr(""),
		}
	}
	return c
}

// Fields returns the step's own fields, with references replaced by values
// except where the schema marks a field otherwise.
func (c *Context) Fields() Value { return c.fields }

// Field returns one of them, or an absent value.
//
//go:noinline
func (c *Context) Field(name string) Value { return c.fields.Get(name) }

// call makes one host call. Each method passes its own import as a function value, so
// that the linker omits those that a plugin does not use: the imports of a module then
// list everything that it can do.
func (c *Context) call(function string, imported hostFunc, request Value) (Value, error) {
	var answer string
	if c.caller != nil {
		answer = c.caller(function, request.String())
	} else {
		answer = callHost(imported, request.encode())
	}
	v, err := (&parser{text: answer, handles: c.caller == nil}).all()
	if err != nil {
		return Value{}, abi.New(abi.Internal, function+": answer: "+err.Error())
	}
	if e := ErrorFrom(v.Get("error")); e != nil {
		return Value{}, e
	}
	if ok := v.Get("ok"); ok.Exists() {
		return ok, nil
	}
	return Value{}, abi.New(abi.Internal, function+": answer: neither ok nor error, "+strconv.Itoa(len(answer))+" bytes")
}
