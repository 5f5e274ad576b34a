// Package step executes lists of steps: it resolves the fields of a step, runs its guest,
// answers the host calls of the guest, and retries a failed step.
//
// A step belongs to a [Run], which has the journal, the state, the schedule and the budget
// that its steps share; package execution implements it. What the steps of all runs share
// is in [Services].
//
// # Files
//
//	run.go           what steps need of their run
//	services.go      what the steps of all runs share
//	list.go          lists of steps
//	step.go          one step: condition, retry, onError, end
//	attempt.go       one attempt: fields, time limit, the guest
//	restore.go       an attempt that a crash interrupted
//	call.go          host calls: table of functions, numbering, replay
//	call_NAME.go     one host function each
//	request.go       decoding of requests
//	record.go        start, work and end of a host call
//	await.go         waits for the answer of a host call, parking of the guest
//	indoubt.go       host calls that a crash interrupted
//	decision.go      pending decisions
//	permission.go    permissions of plugins
//	use.go           limits of an attempt
//	files.go         retries while no file descriptor is left
//	quarantine.go    steps that were executing at several crashes
//	turns.go         execution of suspected steps one at a time
//	key.go           idempotency keys
//	shapes.go        schemas of command parameters
//	condition.go     variables and values of conditions
//	errors.go        causes and errors
package step
