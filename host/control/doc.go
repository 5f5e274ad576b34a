// Package owner is how a second PROCESS reaches the one that has the store: a
// socket in the state folder that answers commands.
//
// Whoever opens the store calls [Listen]; whoever finds it held calls [Dial].
// The protocol is HTTP over a Unix socket of mode 0600:
//
//	GET  /v1/owner             who it is: [Info]
//	GET  /v1/commands          what it can be asked: a list of [Command]
//	POST /v1/commands/{name}   the parameters; answers the result
//
// A server process gives its whole API in place of the last two. Errors are
// those of package problem.
package control
