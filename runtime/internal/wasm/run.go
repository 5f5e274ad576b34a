package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// CallFunc answers one host call. It blocks until it has the reply, and must return
// when ctx ends. The request is not validated and has at most Limits.MessageBytes
// bytes; the function may keep it.
//
// An error unwinds the guest: its instance is closed, and [Module.Run] returns the
// same error. That is how a step parks. A host call that fails, or is denied, returns
// a Reply with {"error": ...} instead.
type CallFunc func(ctx context.Context, function string, request []byte) (Reply, error)

// Reply is the reply to a host call.
type Reply struct {
	Body []byte    // {"ok": value} or {"error": error object}
	Now  time.Time // when the call ended; the guest's clock advances to it
}

// Invocation is one attempt of one step.
type Invocation struct {
	Input []byte // run input, ABI clause A3, without Large
	// Large are the values of [LargeParts] that are not in the text of Input, in the order of their offsets. They are
	// neither copied into it nor searched for in it.
	Large []LargeValue
	// Seed and ClockBase are the random seed and the start time of the attempt, ABI
	// clause A7. Equal values with equal input and replies give equal requests. A seed
	// of [Module.Seed] finds the prewarmed instance of that seed.
	Seed      uint64
	ClockBase time.Time
	Call      CallFunc // nil denies every host call
	// Timeout limits the real time of the call, including host calls.
	// Default: none besides ctx.
	Timeout time.Duration
	// Compute limits the time in which the guest computes, without host calls, and
	// separately the time that it sleeps on its own clock. A Trusted module is not
	// interrupted; it is checked at its host calls only. Default: 5 minutes.
	Compute time.Duration
	Limits  Limits
	// Pure requires an instance that has served no call, also of an untrusted module
	// whose instances are reused. Set it for a replay. It has no effect on a Trusted
	// module, which is tested to make the same requests in a reused instance.
	Pure bool
}

// Limits are the limits of one call. Zero fields have the defaults of ABI clause
// A8.1, and smaller ones for callers that are no engine.
type Limits struct {
	MemoryBytes  int64 // linear memory; 0 is 64 MiB, for callers that are no engine
	OutputBytes  int   // output of run; 0 is 1 MiB, for callers that are no engine
	LogBytes     int   // stdout and stderr together; default 256 KiB
	MessageBytes int   // one request or reply of a host call; 0 is 256 KiB, for callers that are no engine
}

// Result is the outcome of a call.
type Result struct {
	Output      json.RawMessage // the value of "output"
	Outline     json.RawMessage // Output with a short string in place of each value that the guest has only passed on
	Stderr      string          // the last 4 KiB that the guest wrote to stderr
	MemoryBytes int64           // linear memory of the instance at the end of the call
	CopiedBytes int64           // that the guest has read from and written to its call memory
	Reused      bool            // the instance had served a call before
	Prewarmed   bool            // the instance was created before the call and had served none
}

// Problem is one finding of a plugin's validate export about a step's fields.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// maxInput limits the run input in bytes: a value of 16 MiB and what is around it. It stays in
// the call memory while the guest copies it.
const maxInput = 17 << 20

// withDefaults returns inv with the defaults of zero fields.
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

// A LargeValue is a value that belongs into a text.
type LargeValue struct {
	At    int // offset in the text
	Value []byte
}

// WholeInput returns the input with its large values.
func (inv *Invocation) WholeInput() []byte { return joinLarge(inv.Input, inv.Large) }

// inputSize returns the size of the whole input in bytes.
func (inv *Invocation) inputSize() int {
	size := len(inv.Input)
	for _, v := range inv.Large {
		size += len(v.Value)
	}
	return size
}

// maxSleep returns how long the guest may sleep on its own clock.
func (inv Invocation) maxSleep() time.Duration {
	if inv.Timeout > 0 {
		return inv.Timeout
	}
	return inv.Compute
}

// Run executes one attempt of a step. Its error is an [*abi.Error], or the error of
// Invocation.Call. With an error, Result has Stderr and MemoryBytes.
func (m *Module) Run(ctx context.Context, inv Invocation) (Result, error) {
	return m.invoke(ctx, abi.ExportRun, inv, func(outline *Outline, result *Result) error {
		output := outline.Text
		var shape struct {
			Output json.RawMessage `json:"output"`
		}
		if !utf8.Valid(output) {
			return abi.New(abi.Output, "the plugin's output is not UTF-8")
		}
		bad := (*strictjson.Error)(nil)
		switch err := strictjson.DecodeForeign(output, &shape); {
		case errors.As(err, &bad) && bad.Kind == strictjson.Duplicate:
			return abi.New(abi.Output, fmt.Sprintf("the plugin's output: %v", err))
		case err != nil:
			return abi.New(abi.Output, fmt.Sprintf("the plugin's output is not a JSON object: %q", clip(string(output), 80)))
		case shape.Output == nil:
			return abi.New(abi.Output, `the plugin's output has no key "output"`)
		}
		result.Output, result.Outline = outline.Insert(shape.Output), shape.Output
		return nil
	})
}

// Validate calls the module's validate export for the fields of a step. A module
// without that export has no problems. Host calls are denied.
func (m *Module) Validate(ctx context.Context, stepType string, fields json.RawMessage) ([]Problem, error) {
	if err := m.Ready(ctx); err != nil {
		return nil, err
	}
	if !m.validates {
		return nil, nil
	}
	input, err := json.Marshal(map[string]any{"type": stepType, "fields": fields})
	if err != nil {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("validate %q: %v", stepType, err))
	}
	var answer struct {
		Problems []Problem `json:"problems"`
	}
	_, err = m.invoke(ctx, abi.ExportValidate, Invocation{Input: input, Compute: auxTimeout}, func(output *Outline, _ *Result) error {
		if err := strictjson.DecodeForeign(output.Text, &answer); err != nil {
			return abi.New(abi.Output, fmt.Sprintf("validate %q: the plugin's answer is not a list of problems: %v", stepType, err))
		}
		return nil
	})
	return answer.Problems, err
}

// invoke calls an export in an instance. It returns the instance to the pool if the
// module has one and the call, including its output, had no fault.
func (m *Module) invoke(ctx context.Context, export string, inv Invocation, read func(output *Outline, result *Result) error) (result Result, err error) {
	inv = inv.withDefaults()
	end, err := m.beginCall()
	if err != nil {
		return result, err
	}
	defer end()
	if err := m.ready(ctx); err != nil {
		return result, err
	}
	switch {
	case inv.Limits.MemoryBytes > m.host.maxMemory:
		return result, abi.New(abi.Limit, fmt.Sprintf("call plugin %q: a memory limit of %d bytes, at most %d are allowed", m.manifest.Name, inv.Limits.MemoryBytes, m.host.maxMemory))
	case inv.Limits.MemoryBytes < m.minMemory:
		return result, abi.New(abi.Memory, fmt.Sprintf("call plugin %q: the module starts with %d bytes of memory, the limit is %d", m.manifest.Name, m.minMemory, inv.Limits.MemoryBytes))
	case inv.inputSize() > maxInput:
		return result, abi.New(abi.Limit, fmt.Sprintf("call plugin %q: an input of %d bytes, at most %d are allowed", m.manifest.Name, inv.inputSize(), maxInput))
	}
	began := time.Now()
	c, done := m.host.newCall(ctx, inv)
	defer done()
	c.handles = m.manifest.Handles && export == abi.ExportRun
	inst, reused, err := m.acquireInstance(c, inv.Pure)
	if err != nil {
		return result, err
	}
	prewarmed := inst.calls == 0 && inst.born.Before(began)
	// The instance is kept or closed here for every return and panic, and never
	// while the guest is on the stack.
	keep := false
	defer func() {
		if keep {
			m.keep(inst)
		} else {
			m.discard(inst)
		}
	}()
	inst.calls++
	inst.clock.Begin(c.seed, export, c.base)
	inst.clock.SetMaxSleep(inv.maxSleep())
	output, err := inst.call(c, export, inv.Input, inv.Large)
	result = Result{Stderr: inst.stderr.String(), MemoryBytes: inst.memories.Size(), CopiedBytes: c.copied, Reused: reused, Prewarmed: prewarmed}
	switch {
	case err != nil:
	case len(output.Text) > inv.Limits.OutputBytes:
		err = errOutputSize(len(output.Text), inv.Limits.OutputBytes)
	default:
		err = read(output, &result)
	}
	keep = err == nil && m.pool != nil && inst.reusable()
	return result, err
}
