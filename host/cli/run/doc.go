// Package run has the verbs that execute and control runs: run, start, stop, pause,
// resume, retry, fork, decide, logs and exec; and do.
//
// All of them call the engine through an app.Session, in this process or in another one.
// A run is followed by its progress in the live feed, in these steps:
//
//	execute.go    find the process that executes runs, begin the run
//	watch.go      read the progress of the run tree from the live feed
//	follow.go     show it, react to Ctrl-C, wait for the end or for a person
//	decision.go   ask pending decisions on the terminal
//	outcome.go    show how it ended; the exit code
//
// A view (view.go, live.go) draws progress, and lines.go renders it.
//
// do runs the sentinel do (sentinels/do.json): do.go begins it, do_view.go renders its
// progress, do_summary.go its end; do_continue.go and do_undo.go are --continue and --undo.
package run
