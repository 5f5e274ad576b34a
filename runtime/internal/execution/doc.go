// Package execution executes runs: it starts and ends them, pauses and resumes them,
// makes forks and edits of them, and takes them over from a process that ended.
//
// # Levels
//
// The life of a step has five levels, each of which calls the next one:
//
//	iterate          a run: one iteration after the other     iterate.go
//	RunSteps         a list of steps, the run's own or a      step/list.go
//	                 nested one
//	runStep          a step: condition, attempts, retry,      step/step.go
//	                 onError
//	runAttempt       fields, start record, time limit         step/step.go, step/attempt.go
//	callGuest        a Wasm instance runs until it returns    step/attempt.go
//	                 or is parked
//	handleHostCall   a host call of the guest                 step/call.go, step/call_NAME.go
//
// # A run
//
// A [liveRun] is a run that this process executes. It has an identity, which never
// changes; a state, which only records change ([liveRun.Write]); and a schedule, which
// decides when its steps execute. What is known of a run that no process executes is in
// its journal: such a run is read by folding its records.
package execution
