// Package serve is the PROCESS as a service: it loads the sentinels of a
// watched folder, arms their triggers, carries on every run that is not over,
// and answers the API, until it is asked to end.
//
// [Open] makes a [Server], [Server.Run] is its life, [Server.Handler] is the API
// for a program that listens itself. `sentinel serve` is little more than that.
package serve
