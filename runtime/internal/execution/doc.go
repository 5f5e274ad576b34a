// Package execution executes runs: it starts, stops, pauses and resumes them, forks and
// edits them, and recovers those that a process that ended has left unfinished.
//
// # Levels
//
// A run executes on six levels, each of which calls the next one:
//
//	iterate          a run: one iteration after the other    iterate.go
//	RunSteps         a list of steps: those of the           step/list.go
//	                 definition, or a nested list
//	runStep          a step: quarantine, retry, onError      step/step.go
//	runAttempt       an attempt: condition, fields, start    step/step.go, step/attempt.go
//	                 record, time limit
//	callGuest        a Wasm instance runs until it returns   step/attempt.go
//	                 or is parked
//	handleHostCall   a host call of the guest                step/call.go, step/call_NAME.go
//
// # Files
//
// Methods of [Executor], which are also those of runtime.Runtime:
//
//	executor.go      options, active runs, shutdown
//	start.go         start of a run: start key, inputs, first record
//	pause.go         pause of a run or its tree
//	resume.go        resume of one run
//	resume_all.go    recovery of all runs at the start of a process
//	takeover.go      restoring a run from its journal, for both kinds of resume
//	stop.go          stop of a run and its descendants
//	drain.go         end of all steps before a shutdown
//	fork*.go         a new run that continues another one's iteration
//	edit.go          an edit of the definition of one run
//	decision.go      pending decisions
//	summaries.go     summaries of runs
//	result.go        results of runs
//	variables.go     variables of runs, for people
//	stored.go        records for a run that no process executes
//
// Parts of a [liveRun], which is a run that this process executes:
//
//	run.go           main goroutine, end of the run, identity
//	iterate.go       iterations and loops
//	state.go         what changes while the run executes
//	schedule.go      when steps execute: pause gate, slots, clocks
//	write.go         the run's journal
//	retain.go        removal of records of old iterations
//	definition.go    the definition of each iteration
//	plugins.go       the plugins of each iteration
//	scope.go         variables
//	lookup.go        names in references
//	events.go        chains and limits of emitted events
//	budget.go        model budget
//	children.go      child runs
//	background.go    background processes that a crash interrupted
//	quarantine.go    steps that were executing when the host crashed
//	report.go        progress for observers
//
// # State
//
// A liveRun has an identity, which never changes; a state, which only records change
// ([liveRun.Write]); and a schedule, which decides when its steps execute. The state of a
// run that no process executes is read by folding the records of its journal.
package execution
