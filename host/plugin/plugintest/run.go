package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// limit ends a step that hangs; waits are faked, so none takes long.
const limit = time.Minute

// A Call is one host call that a step made.
type Call struct {
	Function string          `json:"function"`
	Request  json.RawMessage `json:"request"`
	Answer   json.RawMessage `json:"answer"`
	Faked    bool            `json:"faked"` // false: nothing was written down for it, and it was denied

	at time.Time // when it ended, on the guest's clock
}

// A Line is one line of a step's log.
type Line struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}

// An Outcome is how a step ended.
type Outcome struct {
	Output      json.RawMessage `json:"output,omitempty"`
	Error       *abi.Error      `json:"error,omitempty"`
	Calls       []Call          `json:"calls"` // log lines left out
	Logs        []Line          `json:"logs"`
	Stderr      string          `json:"stderr,omitempty"`
	MemoryBytes int64           `json:"memoryBytes"`
	DurationMs  float64         `json:"durationMs"` // instance, describe and step
}

// Run carries out one step. What goes wrong with it is in the outcome; the error
// is for an input that no step begins with.
func (p *Plugin) Run(ctx context.Context, in Input, script *Script) (Outcome, error) {
	text, err := in.text(p)
	if err != nil {
		if e := abi.As(err); e != nil { // the engine ends such a step before it begins
			return Outcome{Error: e, Calls: []Call{}, Logs: []Line{}}, nil
		}
		return Outcome{}, err
	}
	return p.run(ctx, text, func(n int, function string, request json.RawMessage) (Call, error) {
		body, faked := script.answer(function, request)
		return Call{function, request, body, faked, Base.Add(time.Duration(n) * time.Millisecond)}, nil
	}), nil
}

// responder answers the n-th call, from 1, log lines not counted.
type responder func(n int, function string, request json.RawMessage) (Call, error)

func (p *Plugin) run(ctx context.Context, input []byte, respond responder) Outcome {
	out := Outcome{Calls: []Call{}, Logs: []Line{}}
	call := func(_ context.Context, function string, request []byte) (guest.Reply, error) {
		if !json.Valid(request) {
			return guest.Reply{Body: badRequest(function), Now: Base}, nil
		}
		if function == abi.FuncLog {
			var l Line
			if json.Unmarshal(request, &l) == nil {
				out.Logs = append(out.Logs, l)
			}
			return guest.Reply{Body: []byte(`{"ok":{}}`)}, nil
		}
		c, err := respond(len(out.Calls)+1, function, request)
		if err != nil {
			return guest.Reply{}, err
		}
		out.Calls = append(out.Calls, c)
		return guest.Reply{Body: c.Answer, Now: c.at}, nil
	}
	begin := time.Now()
	res, err := p.Module.Run(ctx, guest.Invocation{Input: input, Seed: 1, ClockBase: Base, Call: call, Timeout: limit, Pure: p.pure})
	out.DurationMs = float64(time.Since(begin).Microseconds()) / 1000
	out.Output, out.Stderr, out.MemoryBytes = res.Output, res.Stderr, res.MemoryBytes
	if err != nil {
		out.Output = nil
		if out.Error = abi.As(err); out.Error == nil {
			out.Error = abi.New(abi.Internal, err.Error())
		}
	}
	return out
}

func badRequest(function string) []byte {
	return Fake{Error: abi.New(abi.BadFields, fmt.Sprintf("%s: the request is no JSON", function))}.body()
}
