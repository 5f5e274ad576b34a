package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// mostRepeats is how often the same call may be made in a row.
const mostRepeats = 2

// repeats counts calls that are the same as the one before, in two ways: call
// by call, and for a model that goes in circles of several calls, turn by turn.
type repeats struct {
	lastCall, lastTurn string
	calls, turns       int
}

// call returns how often this call was made in a row, with this time.
func (r *repeats) call(call sdk.ToolCall) int {
	if s := signature(call); s != r.lastCall {
		r.lastCall, r.calls = s, 0
	}
	r.calls++
	return r.calls
}

// turn does the same for all calls of a reply.
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

// signature is equal for calls whose arguments differ in their order only.
func signature(call sdk.ToolCall) string { return call.Name + " " + call.Arguments.Canonical() }
