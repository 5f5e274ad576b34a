package abitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/internal/jsondiff"
)

// epoch is the start of every attempt.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A step is the part of a run input that a check defines; input adds the rest.
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

// A called is one host call with its answer. Log lines are stored separately, because
// they are not recorded in the journal (clause A6.14).
type called struct {
	function string
	request  any
	reply    Reply
}

// A script answers the n-th call, counted from 0 and without log lines. An
// answer is the text of an answer object; an error ends the guest.
type script func(n int, function string, request any) (answer string, err error)

// An attemptResult is the result of one attempt.
type attemptResult struct {
	output any
	err    error
	calls  []called
	logs   []any // requests of sentinel_log
}

// errParked is the error with which the kit ends a guest before it replays it.
var errParked = errors.New("parked")

// denied answers every call as a host without grants.
func denied(int, string, any) (string, error) {
	return `{"error":{"code":"denied","message":"the kit grants nothing"}}`, nil
}

// attempt executes a step once. It answers calls from the record first, as a replay, and
// then from the script.
func (j *judge) attempt(input []byte, record []called, s script) attemptResult {
	var t attemptResult
	call := func(_ context.Context, function string, request []byte) (Reply, error) {
		v, err := jsondiff.Decode(request)
		if err != nil {
			j.faultf("A6.1: %s: the request is not JSON: %v: %q", function, err, brief(string(request), 200))
			return Reply{Body: []byte(`{"error":{"code":"bad_fields","message":"not JSON"}}`)}, nil
		}
		if function == abi.FuncLog {
			t.logs = append(t.logs, v)
			return Reply{Body: []byte(`{"ok":{}}`)}, nil
		}
		n := len(t.calls)
		if n < len(record) {
			if faults := jsondiff.Compare("request", record[n].request, v, nil); function != record[n].function || len(faults) > 0 {
				j.faultf("A6.2: replayed call %d: %s, the record has %s; %s", n+1, function, record[n].function, faults)
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

// run executes a step twice, the second time with the recorded answers of the first, and
// returns the first result.
func (j *judge) run(s step, answers script) attemptResult {
	input := s.input()
	first := j.attempt(input, nil, answers)
	again := j.attempt(input, first.calls, func(n int, function string, _ any) (string, error) {
		j.faultf("A6.2: the replay made call %d, %s, after the %d recorded ones", n+1, function, len(first.calls))
		return denied(n, function, nil)
	})
	if errors.Is(first.err, errParked) {
		return first // the replay cannot have the same result
	}
	if len(again.calls) != len(first.calls) {
		j.faultf("A6.2: the replay made %d calls, the first execution %d", len(again.calls), len(first.calls))
	}
	switch {
	case (first.err == nil) != (again.err == nil) || abi.CodeOf(first.err) != abi.CodeOf(again.err):
		j.faultf("A6.2: the replay ended with %s, the first execution with %s", errorText(again.err), errorText(first.err))
	case first.err == nil:
		for _, fault := range jsondiff.Compare("output", first.output, again.output, nil) {
			j.faultf("A6.2: the replay's %s", fault)
		}
	}
	return first
}

// read decodes a text of the guest.
func (j *judge) read(what string, text json.RawMessage) any {
	v, err := jsondiff.Decode(text)
	if err != nil {
		j.fatalf("%s is not JSON: %v: %q", what, err, brief(string(text), 200))
	}
	return v
}

// want adds a fault for each difference of two values.
func (j *judge) want(what string, want, got any, allowed extra) {
	for _, fault := range jsondiff.Compare(what, want, got, allowed) {
		j.faultf("%s", fault)
	}
}

// ended ends the check if the step has failed.
func (j *judge) ended(t attemptResult) {
	if t.err != nil {
		j.fatalf("the step failed: %s", errorText(t.err))
	}
}

// errorText returns an error with its code, for a message.
func errorText(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%q of code %q", brief(err.Error(), 300), abi.CodeOf(err))
}
