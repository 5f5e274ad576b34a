// Package api is how programs and pages reach the host PROCESS over HTTP: a thin
// door in front of the command registry.
//
// Every operation is a command. POST /v1/commands/{name...} calls any of them;
// the resources under /v1 are the same commands under the names that users of
// HTTP expect, with revisions as ETags. One table, [API.Routes], says what there
// is; the guard in front of it refuses whatever the table does not let in, and
// the OpenAPI document is made of it. The promises are numbered in ../API.md.
//
// [New] makes the API. [API.Handler] serves it where any program may connect,
// [API.Local] where the kernel vouches for the caller, and [API.Listen] does the
// former on an address of its own.
package api
