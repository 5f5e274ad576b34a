// Package serve runs the host as a server: it loads the sentinels of a watched
// folder, arms their triggers, resumes unfinished runs and serves the API, until
// it is shut down.
//
// [Open] returns a [Server], [Server.Run] runs it, and [Server.Handler] is the
// API for a program with a listener of its own. `sentinel serve` is a thin
// wrapper around this package.
package serve
