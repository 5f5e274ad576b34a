package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// mostResumes bounds how many checkpoints of a step are tried.
const mostResumes = 20

// Replay does a step again from its record, as a host does after a crash: once
// from its start and once from each of its first checkpoints. It returns where
// the step asked for something else or ended otherwise; such a step cannot be
// made durable.
func (p *Plugin) Replay(ctx context.Context, in Input, first Outcome) ([]string, error) {
	text, err := in.text(p)
	if err != nil {
		return nil, nil // it did not begin the first time either
	}
	problems := p.again(ctx, "replay", text, first.Calls, first)
	resumes := 0
	for i, c := range first.Calls {
		if c.Function != abi.FuncCheckpoint || resumes == mostResumes {
			continue
		}
		var request struct {
			State json.RawMessage `json:"state"`
		}
		if err := json.Unmarshal(c.Request, &request); err != nil {
			return nil, err
		}
		resumes++
		in.State = request.State
		if text, err = in.text(p); err != nil {
			return nil, err
		}
		problems = append(problems, p.again(ctx, fmt.Sprintf("resume after checkpoint %d", resumes), text, first.Calls[i+1:], first)...)
	}
	return problems, nil
}

// again runs the step on recorded calls and compares.
func (p *Plugin) again(ctx context.Context, what string, input []byte, calls []Call, first Outcome) []string {
	stop := abi.New(abi.Plugin, "plugin is not deterministic")
	var problem string
	out := p.run(ctx, input, func(n int, function string, request json.RawMessage) (Call, error) {
		if n > len(calls) {
			problem = fmt.Sprintf("%s: a call more than before: %s %s", what, function, request)
			return Call{}, stop
		}
		c := calls[n-1]
		if c.Function != function || !same(c.Request, request) {
			problem = fmt.Sprintf("%s: call %d was %s %s and now is %s %s", what, n, c.Function, c.Request, function, request)
			return Call{}, stop
		}
		return c, nil
	})
	switch {
	case problem != "":
		return []string{problem + " (a step's requests may depend only on its input and on answers)"}
	case len(out.Calls) < len(calls):
		return []string{fmt.Sprintf("%s: %d calls, before it were %d", what, len(out.Calls), len(calls))}
	case !same(ending(first), ending(out)):
		return []string{fmt.Sprintf("%s: ended with %s, before with %s", what, ending(out), ending(first))}
	}
	return nil
}

// ending is output or error as one JSON value.
func ending(o Outcome) json.RawMessage {
	if o.Error == nil {
		return o.Output
	}
	text, err := json.Marshal(map[string]*abi.Error{"error": o.Error})
	if err != nil { // plain data
		panic(err)
	}
	return text
}

// same reports whether two texts are the same JSON value.
func same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := value(a)
	y, errY := value(b)
	return errX == nil && errY == nil && len(differences("", x, y, false)) == 0
}
