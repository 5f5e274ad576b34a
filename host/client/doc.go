// Package client is how a Go program steers a host PROCESS from outside: it
// defines sentinels, starts and follows runs, emits events.
//
// [New] reaches a server by its URL and token, [Local] the process that has a
// state folder by its socket, [FromEnv] whatever SENTINEL_URL and
// SENTINEL_TOKEN name. [Client.Call] calls any command there is; the other
// methods are the commands that programs use most. Every error that the server
// reports is an *abi.Error in the chain, with the code that it had over there.
package client
