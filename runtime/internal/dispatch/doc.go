// Package dispatch decides what happens when a trigger fires. It arms the triggers
// of all stored definitions, keeps them armed as definitions change, and admits
// their firings: each one starts a run, waits, or ends with an outcome that is
// counted and reported.
//
// # The states of a firing
//
//	a kind fires, or a request was accepted by Receive
//	   |
//	 fired
//	   |-- duplicate    its key or its signed request was admitted before
//	   |-- refused      its chain of events is too long, or the filter fails
//	   |-- filtered     the filter is false
//	   |-- debounced    waits until firings stop
//	   |      |-- replaced by a later firing, and counted as coalesced
//	   |      v
//	 due, the overlap policy decides
//	   |-- skipped      a run is active or others are queued
//	   |-- queued       waits until the active runs have ended, also instead of
//	   |      |         skipped if they end now, if a restart made the firing late, or
//	   |      |         if they wait for a decision about an interrupted call
//	   |      |-- replaced by a later firing that restarts, and counted as coalesced
//	   |      v
//	   |-- refused      the queue is full, or no run can be started
//	   v
//	 started            one commit: the run's first record, the key, the counts
//	                    and the progress of the trigger
//
// A firing is admitted once its outcome is decided and durable. Duplicate, filtered,
// refused, skipped, coalesced and started are final; debounced and queued are not.
// Skipped is what the overlap policy says; coalesced is a firing for which another
// one stands.
//
// Each arrow is one commit, which also holds the counts and the state that the
// kind keeps. So a crash loses both a firing and its outcome, or neither: the kind
// fires again what was not committed, and what was committed is not lost. Firings
// that wait are in the store and continue when triggers are armed again.
// RATIONALE.md gives the reasons.
//
// # The states of a trigger
//
//	stored --Arm--> armed --fires--> armed
//	                  |-- its kind fails: shown as a problem, run again after a backoff
//	                  |-- paused: listed, does not fire
//	                  |-- edited or deleted: disarmed; what was queued still starts
//	                  v
//	               disarmed by Disarm or Close; what waits is kept
//
// # Who calls it
//
// Package runtime owns one [Dispatcher]. It calls Arm and Disarm for the host,
// Refresh after each commit of a definition, and RunStarted and RunEnded for every
// run, since the overlap policy depends on them. What the package needs of the
// engine is in [Options].
package dispatch
