// Package host is the PROCESS: it joins the engine with the outside world,
// commands, shells, models and context, and owns the state folder.
//
// [Open] makes a [Host]; package host/cli drives it from a terminal.
package host
