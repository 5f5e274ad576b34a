package sdktest

import (
	"encoding/json"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// T is the part of *testing.T that the package needs. It does not import testing, because
// the sentinel program links the package.
type T interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A Host answers host calls from a script. Answers of one function are used in
// the order in which they were added; a call without an answer fails the test,
// and so does an answer that is not used by the end of the test.
//
// # Concurrency
//
// A Host serves one [Run] at a time.
type Host struct {
	t      T
	script *Script
	calls  []Call
	logs   []Line
	input  Input // state, attempt, retry and onError
}

// New returns a host without answers.
func New(t T) *Host {
	h := &Host{t: t, script: &Script{strict: true}}
	t.Cleanup(func() {
		if left := h.script.left(); len(left) > 0 && !t.Failed() {
			t.Errorf("%d scripted answers were not used: %s", len(left), strings.Join(left, "; "))
		}
	})
	return h
}

// OK adds answers, each the JSON of a value, to a host function.
func (h *Host) OK(function string, values ...string) *Host {
	h.t.Helper()
	for _, text := range values {
		h.add(Fake{Function: function, OK: json.RawMessage(parse(h.t, text).String())})
	}
	return h
}

// Fail adds an error to a host function's answers.
func (h *Host) Fail(function string, e *sdk.Error) *Host {
	h.t.Helper()
	h.add(Fake{Function: function, Error: e})
	return h
}

// Add adds answers in the form of `sentinel plugin test`: a fake with a request answers only
// calls that match it.
func (h *Host) Add(fakes ...Fake) *Host {
	h.t.Helper()
	h.add(fakes...)
	return h
}

func (h *Host) add(fakes ...Fake) {
	h.t.Helper()
	if err := checkFakes(fakes); err != nil {
		h.t.Fatalf("%v", err)
	}
	h.script.add(fakes...)
}

// State sets the value of the last checkpoint.
func (h *Host) State(text string) *Host {
	h.t.Helper()
	h.input.State = json.RawMessage(parse(h.t, text).String())
	return h
}

// Retry sets the number of the attempt and the error of the one before.
func (h *Host) Retry(attempt int64, e *sdk.Error, category string) *Host {
	h.input.Attempt = attempt
	h.input.Retry = json.RawMessage(sdk.Object(
		sdk.F("attempts", sdk.Int(attempt-1)),
		sdk.F("error", sdk.ErrorValue(e)),
		sdk.F("category", sdk.String(category)),
	).String())
	return h
}

// OnError sets what the definition says about errors of the step: "skip" or "retry".
func (h *Host) OnError(action string) *Host {
	h.input.Step.OnError = action
	return h
}

// Calls returns the calls so far, without log lines.
func (h *Host) Calls() []Call { return h.calls }

// Logs returns the log lines so far.
func (h *Host) Logs() []Line { return h.logs }

// Requests returns the requests of one host function as JSON with sorted keys,
// for comparison.
func (h *Host) Requests(function string) []string {
	h.t.Helper()
	var list []string
	for _, c := range h.calls {
		if c.Function == function {
			list = append(list, parse(h.t, string(c.Request)).Canonical())
		}
	}
	if function == abi.FuncLog {
		for _, l := range h.logs {
			list = append(list, sdk.Object(sdk.F("level", sdk.String(l.Level)), sdk.F("message", sdk.String(l.Message))).Canonical())
		}
	}
	return list
}

func parse(t T, text string) sdk.Value {
	t.Helper()
	v, err := sdk.Parse(text)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
