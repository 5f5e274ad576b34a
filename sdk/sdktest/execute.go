package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Target executes the steps of one plugin. [Native] is a plugin in Go without a
// sandbox; package host/plugin/plugintest has the target of a built module in any
// language.
type Target interface {
	// Fields returns the fields of a step as the guest gets them, see [GuestFields].
	// An *abi.Error is the error with which a host ends the step before it starts.
	Fields(step string, fields json.RawMessage) (json.RawMessage, error)
	// Execute executes one step. An error of call ends it. An *abi.Error is that of the
	// step.
	Execute(ctx context.Context, input []byte, call CallFunc) (Execution, error)
	// Validate returns the problems of fields that are not resolved, a JSON list.
	Validate(ctx context.Context, step string, fields json.RawMessage) (json.RawMessage, error)
}

// A CallFunc answers a host call. now is the guest's clock after the answer.
type CallFunc func(function string, request []byte) (answer []byte, now time.Time, err error)

// An Execution is what a [Target] returns of a step.
type Execution struct {
	Output      json.RawMessage
	Stderr      string
	MemoryBytes int64 // 0 without a sandbox
}

// A Call is one recorded host call.
type Call struct {
	Function string          `json:"function"`
	Request  json.RawMessage `json:"request"`
	Answer   json.RawMessage `json:"answer"`
	Faked    bool            `json:"faked"` // false: the script had no answer, and the call was denied

	at time.Time // when it ended, on the guest's clock
}

// Value returns the request for comparisons of single fields.
func (c Call) Value() sdk.Value {
	v, err := sdk.Parse(string(c.Request))
	if err != nil { // only JSON is recorded
		panic("sdktest: request of " + c.Function + ": " + err.Error())
	}
	return v
}

// A Line is one log line of a step.
type Line struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// An Outcome is the result of a step.
type Outcome struct {
	Output      json.RawMessage `json:"output,omitempty"`
	Error       *abi.Error      `json:"error,omitempty"`
	Calls       []Call          `json:"calls"` // without log lines
	Logs        []Line          `json:"logs"`
	Stderr      string          `json:"stderr,omitempty"`
	MemoryBytes int64           `json:"memoryBytes"`
	DurationMs  float64         `json:"durationMs"` // of instance, describe and step
}

// Execute executes one step with the answers of a script. An error of the step is in the
// outcome; Execute returns an error for an input with which no step starts, and for a call
// that a strict script does not answer.
func Execute(ctx context.Context, target Target, in Input, script *Script) (Outcome, error) {
	text, err := in.text(target)
	if err != nil {
		if e := abi.As(err); e != nil { // a host ends such a step before it starts
			return Outcome{Error: e, Calls: []Call{}, Logs: []Line{}}, nil
		}
		return Outcome{}, err
	}
	out := execute(ctx, target, text, func(n int, function string, request json.RawMessage) (Call, error) {
		body, faked, err := script.answer(function, request)
		return Call{function, request, body, faked, Base.Add(time.Duration(n) * time.Millisecond)}, err
	})
	return out, script.stopped
}

// responder answers the n-th call, from 1. Log lines are not counted.
type responder func(n int, function string, request json.RawMessage) (Call, error)

func execute(ctx context.Context, target Target, input []byte, respond responder) Outcome {
	out := Outcome{Calls: []Call{}, Logs: []Line{}}
	call := func(function string, request []byte) ([]byte, time.Time, error) {
		if !json.Valid(request) {
			return badRequest(function), Base, nil
		}
		c, err := respond(len(out.Calls)+1, function, request)
		switch {
		case err != nil:
			return nil, time.Time{}, err
		case function == abi.FuncLog:
			var l Line
			if json.Unmarshal(request, &l) == nil {
				out.Logs = append(out.Logs, l)
			}
			return c.Answer, time.Time{}, nil
		}
		out.Calls = append(out.Calls, c)
		return c.Answer, c.at, nil
	}
	begin := time.Now()
	res, err := target.Execute(ctx, input, call)
	out.DurationMs = millis(time.Since(begin))
	out.Output, out.Stderr, out.MemoryBytes = res.Output, res.Stderr, res.MemoryBytes
	if err != nil {
		out.Output = nil
		if out.Error = abi.As(err); out.Error == nil {
			out.Error = abi.New(abi.Internal, err.Error())
		}
	}
	return out
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func badRequest(function string) []byte {
	return Fake{Error: abi.New(abi.BadFields, fmt.Sprintf("%s: the request is not JSON", function))}.body()
}
