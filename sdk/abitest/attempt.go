package abitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// epoch is the start of every attempt that the kit makes.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A step is what a check wants to be run; run makes the rest of the input up.
type step struct {
	typ     string
	fields  any
	id      string
	name    string
	attempt int
	retry   any
	state   any
}

// input is the run input of a step, clause A3.1.
func (s step) input() []byte {
	inner := map[string]any{"type": s.typ, "address": "2.then.0", "path": "1#7.then.0", "fields": s.fields}
	if s.id != "" {
		inner["id"] = s.id
	}
	if s.name != "" {
		inner["name"] = s.name
	}
	in := map[string]any{
		"abi": abi.Version, "step": inner, "attempt": max(s.attempt, 1),
		"run": map[string]any{"id": "run_kit", "sentinel": "kit", "iteration": 7, "workspace": "/work space/ü", "key": "run_kit/1#7.then.0"},
	}
	if s.retry != nil {
		in["retry"] = s.retry
	}
	if s.state != nil {
		in["state"] = s.state
	}
	return encode(in)
}

// A called is one host call with its answer. Lines of the log are kept apart: they are
// not journaled, clause A6.14.
type called struct {
	function string
	request  any
	reply    Reply
}

// A script answers the n-th call, counted from 0 and without log lines. An
// answer is the text of an answer object; an error ends the guest.
type script func(n int, function string, request any) (answer string, err error)

// A take is what came of one attempt.
type take struct {
	output any
	err    error
	calls  []called
	logs   []any // requests of sentinel_log
}

// errParked is how the kit ends a guest that is to be replayed.
var errParked = errors.New("parked")

// denied answers every call as a host does that grants nothing.
func denied(int, string, any) (string, error) {
	return `{"error":{"code":"denied","message":"the kit grants nothing"}}`, nil
}

// attempt runs a step once. Answers are taken from the record while there are
// any, as a replay does, and from the script then.
func (j *judge) attempt(input []byte, record []called, s script) take {
	var t take
	call := func(_ context.Context, function string, request []byte) (Reply, error) {
		v, err := decode(request)
		if err != nil {
			j.faultf("A6.1: %s: the request is no JSON: %v: %q", function, err, brief(string(request), 200))
			return Reply{Body: []byte(`{"error":{"code":"bad_fields","message":"no JSON"}}`)}, nil
		}
		if function == abi.FuncLog {
			t.logs = append(t.logs, v)
			return Reply{Body: []byte(`{"ok":{}}`)}, nil
		}
		n := len(t.calls)
		if n < len(record) {
			if faults := diff("request", record[n].request, v, nil); function != record[n].function || len(faults) > 0 {
				j.faultf("A6.2: replayed call %d: %s, recorded was %s; %s", n+1, function, record[n].function, faults)
			}
			t.calls = append(t.calls, called{function, v, record[n].reply})
			return record[n].reply, nil
		}
		answer, err := s(n, function, v)
		if err != nil {
			return Reply{}, err
		}
		reply := Reply{Body: []byte(answer), Now: epoch.Add(time.Duration(n+1) * time.Second)}
		t.calls = append(t.calls, called{function, v, reply})
		return reply, nil
	}
	result, err := j.guest.Run(j.ctx, Invocation{Input: input, Seed: 7, Clock: epoch, Call: call})
	if t.err = err; err == nil {
		t.output = j.read("output", result.Output)
	}
	return t
}

// run runs a step twice, the second time answered from the record of the first,
// and returns what the first gave.
func (j *judge) run(s step, answers script) take {
	input := s.input()
	first := j.attempt(input, nil, answers)
	again := j.attempt(input, first.calls, func(n int, function string, _ any) (string, error) {
		j.faultf("A6.2: the replay made call %d, %s, after the %d recorded ones", n+1, function, len(first.calls))
		return denied(n, function, nil)
	})
	if errors.Is(first.err, errParked) {
		return first // the replay cannot come to the same end
	}
	if len(again.calls) != len(first.calls) {
		j.faultf("A6.2: the replay made %d calls, the first pass %d", len(again.calls), len(first.calls))
	}
	switch {
	case (first.err == nil) != (again.err == nil) || abi.CodeOf(first.err) != abi.CodeOf(again.err):
		j.faultf("A6.2: the replay ended with %s, the first pass with %s", said(again.err), said(first.err))
	case first.err == nil:
		for _, fault := range diff("output", first.output, again.output, nil) {
			j.faultf("A6.2: the replay's %s", fault)
		}
	}
	return first
}

// read decodes what a guest wrote.
func (j *judge) read(what string, text json.RawMessage) any {
	v, err := decode(text)
	if err != nil {
		j.fatalf("%s is no JSON: %v: %q", what, err, brief(string(text), 200))
	}
	return v
}

// want notes where a value is not as it should be.
func (j *judge) want(what string, want, got any, allowed extra) {
	for _, fault := range diff(what, want, got, allowed) {
		j.faultf("%s", fault)
	}
}

// ended ends the check unless the step went well.
func (j *judge) ended(t take) {
	if t.err != nil {
		j.fatalf("the step failed: %s", said(t.err))
	}
}

// said shows an error with its code.
func said(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%q of code %q", brief(err.Error(), 300), abi.CodeOf(err))
}
