// Package client is a Go client of the HTTP API: it defines sentinels, starts and
// follows runs, and emits events.
//
// [New] connects to a server by its URL and token, [Local] to the owner of a
// state folder by its control socket, and [FromEnv] to the server of SENTINEL_URL
// and SENTINEL_TOKEN. [Client.Call] calls any command; the other methods are the
// commands that programs use most. Errors of the server have an *abi.Error in
// their chain, with the server's code.
package client
