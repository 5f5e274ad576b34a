package sdktest

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Host answers host calls from a script. Answers of one function are used in
// the order in which they were added; a call without an answer fails the test,
// and so does an answer that is not used by the end of the test.
//
// # Concurrency
//
// A Host serves one [Run] at a time.
type Host struct {
	t       testing.TB
	answers map[string][]string
	folders map[string]map[string]string
	calls   []Call
	state   sdk.Value
	attempt int64
	retry   sdk.Value
}

// A Call is one recorded host call.
type Call struct {
	Function string
	Request  sdk.Value
	Answer   string // the text of the answer
}

// New returns a host without answers.
func New(t testing.TB) *Host {
	h := &Host{t: t, answers: map[string][]string{}, attempt: 1}
	t.Cleanup(func() {
		for function, left := range h.answers {
			if len(left) > 0 && !t.Failed() {
				t.Errorf("%s: %d scripted answers were not used, first: %s", function, len(left), left[0])
			}
		}
	})
	return h
}

// OK adds answers, each the JSON of a value, to a host function.
func (h *Host) OK(function string, values ...string) *Host {
	h.t.Helper()
	for _, text := range values {
		v, err := sdk.Parse(text)
		if err != nil {
			h.t.Fatalf("answer for %s: %v: %s", function, err, text)
		}
		h.answers[function] = append(h.answers[function], sdk.Object(sdk.F("ok", v)).String())
	}
	return h
}

// Fail adds an error to a host function's answers.
func (h *Host) Fail(function string, e *sdk.Error) *Host {
	h.answers[function] = append(h.answers[function], sdk.Object(sdk.F("error", sdk.ErrorValue(e))).String())
	return h
}

// State sets the value of the last checkpoint.
func (h *Host) State(text string) *Host {
	h.t.Helper()
	h.state = parse(h.t, text)
	return h
}

// Retry sets the number of the attempt and the error of the one before.
func (h *Host) Retry(attempt int64, e *sdk.Error, category string) *Host {
	h.attempt = attempt
	h.retry = sdk.Object(
		sdk.F("attempts", sdk.Int(attempt-1)),
		sdk.F("error", sdk.ErrorValue(e)),
		sdk.F("category", sdk.String(category)),
	)
	return h
}

// Calls returns the calls so far.
func (h *Host) Calls() []Call { return h.calls }

// Requests returns the requests of one host function as JSON with sorted keys,
// for comparison.
func (h *Host) Requests(function string) []string {
	var list []string
	for _, c := range h.calls {
		if c.Function == function {
			list = append(list, c.Request.Canonical())
		}
	}
	return list
}

// call is the [sdk.Caller] of the first execution.
func (h *Host) call(function, request string) string {
	h.t.Helper()
	v := parse(h.t, request)
	answer := ""
	switch queue := h.answers[function]; {
	case len(queue) > 0:
		answer, h.answers[function] = queue[0], queue[1:]
	case function == abi.FuncFile && h.folders != nil:
		answer = h.file(v)
	case function == "sentinel_checkpoint" || function == "sentinel_log":
		answer = `{"ok":{}}` // always the same answer, no script needed
	default:
		h.t.Fatalf("%s: no scripted answer left for %s", function, request)
	}
	h.calls = append(h.calls, Call{function, v, answer})
	return answer
}

func parse(t testing.TB, text string) sdk.Value {
	t.Helper()
	v, err := sdk.Parse(text)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
