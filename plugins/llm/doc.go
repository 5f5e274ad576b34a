// Package llm implements the step type that asks a language model, and executes
// the tools that the model calls until it has replied.
//
// Each turn and each tool is one host call, so the journal has each reply and each
// result, and an interrupted step repeats none of them. The host checks every tool
// call against the step's allow list. This package decides when to continue and
// when to stop:
//
//   - maxTurns is exact. The model is informed before its last turn. If it calls
//     tools in the last turn, the step ends with stopReason "limit".
//   - maxToolCalls is exact as well. Calls beyond it are answered with an error, so that
//     the model can reply. If it calls tools again, the step ends with "limit".
//   - The same call twice in a row gets its result and a warning. The third time
//     ends the step with stopReason "repeated".
//   - A reply with neither text nor a tool call is asked for once more; a second one ends the
//     step with stopReason "empty" and success false, unless the step has checks or a schema.
//   - A call that confirm covers is executed after a person has approved its kind (kind.go,
//     confirm.go). A call that is not approved is an error for the model.
//   - A reply without tool calls is judged by the steps in checks; if they fail, the
//     conversation continues with what they say, maxChecks times.
//   - An error of a tool is returned to the model. It does not end the step, unless
//     the run is being stopped.
//
// A turn that fails for a transient reason is made again: see retry.go.
//
// Ending early is a result with success false, not an error: the turns are paid for
// and the tools have had effects, so that a loop around the step can continue from
// there. A reply that does not match the schema after one correction is an error.
package llm
