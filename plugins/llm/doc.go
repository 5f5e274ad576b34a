// Package llm is the step type that asks a language model and carries out the
// tools it calls, until it answers.
//
// One turn is one call of the host and one tool is another, so each reply and
// each result is recorded by itself and a step that is interrupted repeats
// none that was paid for. The host holds every tool call to the step's
// allow-list; this package decides when to go on and when to stop:
//
//   - maxTurns is exact. The turn before the last tells the model so. A model
//     that still wants tools at the last one ends the step with finish "limit".
//   - The same call twice in a row gets its result and a warning; a third time
//     ends the step with finish "repeated".
//   - An error of a tool is fed back to the model; it never ends the step,
//     unless the run itself is being stopped.
//
// Ending early is a result with success false, not an error: turns were paid
// for and tools have worked, and a loop around the step may well go on from
// there. A reply that does not fit the schema after one repeated question is an
// error.
package llm
