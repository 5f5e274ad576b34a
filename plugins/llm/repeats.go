package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// maxRepeats is how often the same call is executed in a row.
const maxRepeats = 2

// repeats counts repeated calls in two ways: call by call, and turn by turn for a
// model that repeats a sequence of calls.
type repeats struct {
	lastCall, lastTurn string
	calls, turns       int
}

// call returns how often this call was made in a row, including this time.
func (r *repeats) call(call sdk.ToolCall) int {
	if s := signature(call); s != r.lastCall {
		r.lastCall, r.calls = s, 0
	}
	r.calls++
	return r.calls
}

// turn returns how often the calls of a reply were made in a row.
func (r *repeats) turn(calls []sdk.ToolCall) int {
	all := ""
	for _, call := range calls {
		all += signature(call) + "\n"
	}
	if all != r.lastTurn {
		r.lastTurn, r.turns = all, 0
	}
	r.turns++
	return r.turns
}

// signature is equal for calls whose arguments differ only in their order.
func signature(call sdk.ToolCall) string { return call.Name + " " + call.Arguments.Canonical() }
